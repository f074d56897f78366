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

---@param buf integer
---@param row integer From 0, as `col`, in bytes: the cursor.
---@param col integer
---@param rest codespec.Rest
function M.show(buf, row, col, rest)
  M.hide(buf)
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
    })
  end
  if #below > 0 then
    vim.api.nvim_buf_set_extmark(buf, ns, row, col, {
      virt_lines = vim.tbl_map(function(line)
        return { { expand(line, 0, tabstop), 'CodespecGhostText' } }
      end, below),
      undo_restore = false,
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
