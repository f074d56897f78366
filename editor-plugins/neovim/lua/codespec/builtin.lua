---The same commands where |vim.lsp.inline_completion| draws (Neovim 0.12 or newer).
local client = require('codespec.client')
local edit = require('codespec.edit')
local suggestion = require('codespec.suggestion')

local api = vim.api
local M = {}

---Insert the first `length` bytes of what is left of an item. It was made for an earlier text, and
---Neovim does not follow what was typed of it since.
---@param item vim.lsp.inline_completion.Item
---@param length? fun(text: string): integer
local function insert(item, length)
  local buf = api.nvim_get_current_buf()
  local at = api.nvim_win_get_cursor(0)
  local row, col = at[1] - 1, at[2]
  local first, from, last, to = row, col, row, col
  if item.range then
    first, from, last, to = item.range:to_extmark()
  end
  if first ~= last or first > row or (first == row and from > col) then
    return
  end
  local after = api.nvim_buf_get_lines(buf, row, row + 1, true)[1]:sub(col + 1)
  local typed = table.concat(api.nvim_buf_get_text(buf, first, from, row, col, {}), '\n')
  local text = item.insert_text --[[@as string]]
  local candidate = { text = text, tail = after:sub(to - from + 1), item = item }
  local rest = suggestion.rest(candidate, typed, after)
  if not rest then
    return
  end
  local n = length and length(rest.text) or #rest.text
  edit.insert(buf, row, col, rest, n)
  if n == #rest.text then
    client.accepted(item)
  end
end

---@param length? fun(text: string): integer
---@return boolean done
function M.accept(length)
  return vim.lsp.inline_completion.get({
    on_accept = function(item)
      insert(item, length)
    end,
  })
end

function M.cycle(step)
  vim.lsp.inline_completion.select({ count = step })
  return true
end

---There is no other way to hide what is shown.
function M.dismiss()
  local filter = { bufnr = api.nvim_get_current_buf() }
  vim.lsp.inline_completion.enable(false, filter)
  vim.lsp.inline_completion.enable(true, filter)
  return true
end

return M
