---A sign beside the cursor's line: a suggestion is ready for whom asks.
local client = require('codespec.client')

local api = vim.api
local M = {}

M.namespace = api.nvim_create_namespace('codespec.mark')
local SIGN = '»'
local marked ---@type integer? the buffer

---Remove it: the text changed, or Insert mode was left.
function M.clear()
  if marked and api.nvim_buf_is_valid(marked) then
    api.nvim_buf_clear_namespace(marked, M.namespace, 0, -1)
  end
  marked = nil
end

---Show it, or remove it.
function M.update()
  M.clear()
  if client.has_ready() and api.nvim_get_mode().mode:sub(1, 1) == 'i' then
    marked = api.nvim_get_current_buf()
    local row = api.nvim_win_get_cursor(0)[1] - 1
    local sign = { sign_text = SIGN, sign_hl_group = 'CodespecReady' }
    api.nvim_buf_set_extmark(marked, M.namespace, row, 0, sign)
  end
end

return M
