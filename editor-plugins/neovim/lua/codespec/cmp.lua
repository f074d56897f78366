---A source of suggestions for nvim-cmp, for its `register_source`.
local menu = require('codespec.menu')

local M = {}

local MANUAL = 'manual' -- nvim-cmp's reason where the user asked

---Positions of the items, in bytes.
function M.get_position_encoding_kind()
  return 'utf-8'
end

function M.get_trigger_characters()
  return menu.TRIGGERS
end

---@param params { context: { option: { reason?: string } } }
---@param callback fun(response: table)
function M.complete(_, params, callback)
  menu.ask(params.context.option.reason == MANUAL, function(items)
    callback({ items = items, isIncomplete = true })
  end)
end

---@param callback fun(item: table)
function M.resolve(_, item, callback)
  menu.selected(item, callback)
end

function M.execute(_, item, callback)
  menu.accepted(item)
  callback(item)
end

return M
