---A source of suggestions for blink.cmp: the `module` of one of its providers.
local menu = require('codespec.menu')

local M = {}

---@return table source
function M.new()
  return setmetatable({}, { __index = M })
end

function M.get_trigger_characters()
  return menu.TRIGGERS
end

---@param context { trigger: { kind: string } }
---@param callback fun(response: table)
---@return fun() cancel
function M.get_completions(_, context, callback)
  return menu.ask(context.trigger.kind == 'manual', function(items)
    callback({ items = items, is_incomplete_forward = true, is_incomplete_backward = true })
  end)
end

---@param callback fun(item: table)
function M.resolve(_, item, callback)
  menu.selected(item, callback)
end

function M.execute(_, _, item, callback, insert)
  insert()
  menu.accepted(item)
  callback()
end

return M
