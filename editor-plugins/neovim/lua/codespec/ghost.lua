---Drawing a suggestion at the cursor with extmarks.
local suggestion = require('codespec.suggestion')

local M = {}

local ns = vim.api.nvim_create_namespace('codespec')
M.namespace = ns

---Virtual text shows a tab as one cell: make it as wide as it will be.
---@param text string
---@param column integer Where `text` begins on the screen's line, from 0.
---@param tabstop integer
local function expand(text, column, tabstop)
  if not text:find('\t', 1, true) then
    return text
  end
  local out = {}
  for part, tab in text:gmatch('([^\t]*)(\t?)') do
    column = column + vim.fn.strdisplaywidth(part)
    out[#out + 1] = part
    if tab ~= '' then
      local width = tabstop - column % tabstop
      column = column + width
      out[#out + 1] = (' '):rep(width)
    end
  end
  return table.concat(out)
end

local drawn_in ---@type integer? the window that `keep_to` was called for
local is_scoped ---@type boolean? as Neovim 0.10 wants to be told with each extmark

---Draw in one window alone: others of the same buffer have no cursor there, and their lines would
---jump. Neovim calls the functions for it experimental; without them all windows show it.
---@param win integer
local function keep_to(win)
  if win == drawn_in then
    return
  elseif vim.api.nvim__ns_set then
    pcall(vim.api.nvim__ns_set, ns, { wins = { win } })
  elseif vim.api.nvim__win_add_ns then
    pcall(vim.api.nvim__win_del_ns, drawn_in, ns)
    is_scoped = pcall(vim.api.nvim__win_add_ns, win, ns) or nil
  end
  drawn_in = win
end

---In the current window.
---@param buf integer
---@param row integer From 0, as `col`, in bytes: the cursor.
---@param col integer
---@param rest codespec.Rest
function M.show(buf, row, col, rest)
  M.hide(buf)
  keep_to(vim.api.nvim_get_current_win())
  local pieces, below = suggestion.layout(rest)
  local tabstop = vim.bo[buf].tabstop
  local before = vim.api.nvim_buf_get_text(buf, row, 0, row, col, {})[1]
  for _, piece in ipairs(pieces) do
    local text = expand(piece[2], vim.fn.strdisplaywidth(before), tabstop)
    vim.api.nvim_buf_set_extmark(buf, ns, row, col + piece[1], {
      virt_text = { { text, 'CodespecGhostText' } },
      virt_text_pos = 'inline',
      hl_mode = 'combine',
      undo_restore = false,
      scoped = is_scoped,
    })
  end
  if #below > 0 then
    vim.api.nvim_buf_set_extmark(buf, ns, row, col, {
      virt_lines = vim.tbl_map(function(line)
        return { { expand(line, 0, tabstop), 'CodespecGhostText' } }
      end, below),
      undo_restore = false,
      scoped = is_scoped,
    })
  end
end

---@param buf integer
function M.hide(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  end
end

return M
