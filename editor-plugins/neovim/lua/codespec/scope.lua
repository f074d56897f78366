---Where suggestions are made without being asked for.
local client = require('codespec.client')
local config = require('codespec.config')

local M = {}

---When suggestions come again, in seconds as of os.time(); 0 where they do.
local snoozed_until = 0

---No suggestions for so many minutes; 0: they come again.
---@param minutes number
function M.snooze(minutes)
  snoozed_until = minutes > 0 and os.time() + minutes * 60 or 0
end

---@return string? why
local function why_snoozed()
  local left = math.ceil((snoozed_until - os.time()) / 60)
  if left > 0 then
    return ('snoozed for %d more minute%s'):format(left, left > 1 and 's' or '')
  end
end

---Whether the plug-in has anything to do with a buffer; where not, why.
---@param buf integer
---@return string? why
function M.why_not_served(buf)
  if not vim.api.nvim_buf_is_loaded(buf) then
    return 'the buffer is not loaded'
  elseif vim.bo[buf].buftype ~= '' then
    return ('not a file: a buffer of type "%s"'):format(vim.bo[buf].buftype)
  elseif vim.api.nvim_buf_get_name(buf) == '' and client.knows_other_unnamed(buf) then
    return 'there is another buffer without a name: give this one a name'
  end
end

---Whether a buffer gets suggestions by itself; where not, why.
---@param buf integer
---@return string? why
function M.why_off(buf)
  local why = M.why_not_served(buf)
  if why then
    return why
  elseif not vim.bo[buf].modifiable then
    return 'the buffer cannot be modified'
  elseif vim.bo[buf].readonly then
    return 'the buffer is read-only'
  end
  why = why_snoozed()
  if why then
    return why
  end
  local chosen = vim.b[buf].codespec_enabled
  if chosen == false then
    return 'switched off for this buffer'
  elseif chosen == true then
    return nil
  end
  local filetype = vim.bo[buf].filetype
  local wanted = config.current.filetypes[filetype]
  if wanted == nil then
    wanted = config.current.filetypes['*']
  end
  if wanted == false then
    return ('switched off for filetype "%s"'):format(filetype)
  elseif not config.current.enabled then
    return 'switched off'
  end
end

---@alias codespec.Scope 'buffer'|'filetype'|'global'

---@param scope codespec.Scope
---@param on boolean? nil: the other way round
---@param buf integer
---@return boolean on What holds now.
function M.set(scope, on, buf)
  if on == nil then
    if scope == 'buffer' then
      on = M.why_off(buf) ~= nil
    elseif scope == 'filetype' then
      on = config.current.filetypes[vim.bo[buf].filetype] == false
    else
      on = not config.current.enabled
    end
  end
  if scope == 'buffer' then
    vim.b[buf].codespec_enabled = on
  elseif scope == 'filetype' then
    config.current.filetypes[vim.bo[buf].filetype] = on
  else
    config.current.enabled = on
  end
  return on
end

return M
