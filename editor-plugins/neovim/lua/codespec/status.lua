---The state of a buffer in words.
local client = require('codespec.client')
local inline = require('codespec.inline')
local scope = require('codespec.scope')

local M = {}

---@class codespec.Status
---@field kind 'ready'|'thinking'|'starting'|'paused'|'off'|'error'
---@field message string The reason, or the model.

---@param buf integer
---@return codespec.Status
function M.of(buf)
  local why = scope.why_off(buf)
  if why then
    return { kind = 'off', message = why }
  elseif client.failure then
    return { kind = 'error', message = client.failure }
  end
  local said = client.status
  if not said then
    return { kind = 'starting', message = client.id and 'starting the server' or 'no server yet' }
  elseif said.kind == 'Error' then
    return { kind = 'error', message = said.message }
  elseif said.kind == 'Inactive' then
    return { kind = 'paused', message = (said.message:gsub('^paused: ', '')) }
  elseif said.busy then
    return { kind = 'starting', message = said.message }
  end
  local message = said.message:gsub('^ready: ', '')
  return { kind = inline.thinking() and 'thinking' or 'ready', message = message }
end

local words = {
  ready = 'codespec',
  thinking = 'codespec …',
  starting = 'codespec …',
  paused = 'codespec paused',
  off = 'codespec off',
  error = 'codespec error',
}

local drawn ---@type string?

local function now()
  local kind = M.of(vim.api.nvim_get_current_buf()).kind
  return kind == 'ready' and client.has_ready() and 'codespec »' or words[kind]
end

---@return string
function M.statusline()
  drawn = now()
  return drawn
end

---Tell statuslines and others that the state may have changed.
function M.announce()
  vim.api.nvim_exec_autocmds('User', { pattern = 'CodespecStatus', modeline = false })
  if drawn and drawn ~= now() then
    vim.cmd.redrawstatus()
  end
end

return M
