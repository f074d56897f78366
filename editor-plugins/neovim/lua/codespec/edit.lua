---Putting a suggestion into the buffer.
local suggestion = require('codespec.suggestion')

local M = {}

---Insert the first `n` bytes of a rest at the cursor of the current window and move the cursor
---behind them.
---@param buf integer
---@param row integer From 0, as `col`, in bytes: the cursor.
---@param col integer
---@param rest codespec.Rest
---@param n integer
---@return string text What was inserted.
function M.insert(buf, row, col, rest, n)
  local text = rest.text:sub(1, n)
  local lines = vim.split(text, '\n', { plain = true })
  local n_replaced = suggestion.n_replaced(rest, n)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels -- undone by itself, not with what was typed
  vim.api.nvim_buf_set_text(buf, row, col, row, col + n_replaced, lines)
  vim.api.nvim_win_set_cursor(0, { row + #lines, #lines == 1 and col + #text or #lines[#lines] })
  return text
end

return M
