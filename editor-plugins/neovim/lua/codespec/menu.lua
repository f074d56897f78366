---Suggestions as items of a completion menu, for those who want no ghost text: what `codespec.blink`
---and `codespec.cmp` have in common.
local client = require('codespec.client')
local compat = require('codespec.compat')
local scope = require('codespec.scope')

local api = vim.api
local M = {}

local INVOKED, AUTOMATIC = 1, 2
local LABEL_WIDTH = 60

---Characters behind which a menu asks, though no word is begun.
M.TRIGGERS = { '.', ':', '(', '[', '{', '=', ',', '>', '-', '/', '"', "'", ' ' }

---@class codespec.MenuItem: lsp.CompletionItem
---@field data { item: table } The server's item.

---@param text string
---@return string fence Longer than every run of backticks in it, which would end the block.
local function fence_around(text)
  local n_longest = 2
  for run in text:gmatch('`+') do
    n_longest = math.max(n_longest, #run)
  end
  return ('`'):rep(n_longest + 1)
end

---A menu finds an item by the word at the cursor, so the item has it in front.
---@param item table The server's.
---@param buf integer
---@param row integer
---@param col integer Bytes before the cursor.
---@param encoding string Of the server's positions.
---@return codespec.MenuItem
local function to_menu(item, buf, row, col, encoding)
  local line = api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
  local word = line:sub(1, col):match('[%w_\128-\255]*$')
  local n_replaced = compat.n_replaced(item, line:sub(col + 1), encoding)
  local text = word .. item.insertText
  local first = vim.trim(text:match('[^\n]*%S[^\n]*') or text)
  local shown = vim.fn.strcharpart(first, 0, LABEL_WIDTH)
  local fence = fence_around(text)
  return {
    label = (shown ~= first or text:find('\n')) and shown .. '…' or shown,
    filterText = vim.trim(text),
    sortText = ' ',
    kind = vim.lsp.protocol.CompletionItemKind.Text,
    insertTextFormat = vim.lsp.protocol.InsertTextFormat.PlainText,
    textEdit = {
      newText = text,
      range = {
        start = { line = row, character = col - #word },
        ['end'] = { line = row, character = col + n_replaced },
      },
    },
    documentation = {
      kind = 'markdown',
      value = ('%s%s\n%s\n%s'):format(fence, vim.bo[buf].filetype, text, fence),
    },
    data = { item = item },
  }
end

---Ask for what could stand at the cursor.
---@param invoked boolean The user asked, so that nothing is held back.
---@param answer fun(items: codespec.MenuItem[]) Called once, also with none. Positions are in bytes.
---@return fun() cancel
function M.ask(invoked, answer)
  local server, buf = client.get(), api.nvim_get_current_buf()
  local is_off = not invoked and scope.why_off(buf)
  if not server or is_off or not vim.lsp.buf_is_attached(buf, server.id) then
    answer({})
    return function() end
  end
  local at = api.nvim_win_get_cursor(0)
  local row, col = at[1] - 1, at[2]
  local tick = api.nvim_buf_get_changedtick(buf)
  local params = vim.lsp.util.make_position_params(0, server.offset_encoding)
  params.context = { triggerKind = invoked and INVOKED or AUTOMATIC }
  local ok, id = compat.request(server, 'textDocument/inlineCompletion', params, function(_, result)
    local is_late = not api.nvim_buf_is_valid(buf) or tick ~= api.nvim_buf_get_changedtick(buf)
    local found = not is_late and result and (result.items or result) or {}
    answer(vim.tbl_map(function(item)
      return to_menu(item, buf, row, col, server.offset_encoding)
    end, found))
  end, buf)
  if not ok then
    answer({})
  end
  return function()
    if ok and id then
      compat.cancel(server, id)
    end
  end
end

---An item is selected, and with it its documentation shown: both menus ask to resolve it then; where
---none is, blink.cmp 2 asks for the first. One that is merely listed has not been read, and is not
---reported.
---@param item codespec.MenuItem
---@param answer fun(item: codespec.MenuItem)
function M.selected(item, answer)
  client.notify('textDocument/didShowCompletion', { item = item.data.item })
  answer(item)
end

---An item was inserted.
---@param item codespec.MenuItem
function M.accepted(item)
  client.accepted(item.data.item)
end

return M
