---`:Codespec`
local M = {}

-- Neovim's status of a job that did not start, such as a script whose interpreter is gone.
local NOT_RUN = 122
local scopes = { 'buffer', 'filetype', 'global' }

---What has no effect before setup() says so.
local function need_setup()
  if not require('codespec').is_set_up() then
    error('codespec: setup() was not called, see :help codespec-install', 0)
  end
end

---No suggestions for some minutes; 0, or "off": they come again.
local function snooze(arguments)
  need_setup()
  local word = arguments[1] or '30'
  local minutes = word == 'off' and 0 or tonumber(word)
  if not minutes or minutes < 0 then
    error(('codespec: "%s" is no number of minutes'):format(word), 0)
  end
  require('codespec').snooze(minutes)
  local status = require('codespec').status()
  vim.notify(minutes > 0 and ('codespec: ' .. status.message) or 'codespec: suggestions come again')
end

local function switch(on)
  return function(arguments)
    need_setup()
    local where = arguments[1] or 'buffer'
    if not vim.list_contains(scopes, where) then
      error(('codespec: "%s" is none of %s'):format(where, table.concat(scopes, ', ')), 0)
    end
    local now = require('codespec').toggle(where, on)
    vim.notify(('codespec: %s for this %s'):format(now and 'on' or 'off', where):gsub('this global', 'all'))
  end
end

---Options that setup() was given for the server, so that the command line speaks of what runs here.
---@return table<string, string>
local function environment()
  local found = vim.empty_dict() -- an empty table would be a list
  for section, values in pairs(require('codespec.config').settings()) do
    for key, value in pairs(type(values) == 'table' and values or {}) do
      local words = tostring(value)
      if type(value) == 'table' then
        words = next(value) == nil and '[]' or vim.json.encode(value)
      end
      found[('CODESPEC_%s_%s'):format(section, key):upper()] = words
    end
  end
  return found
end

---Run `codespec ...` beside the server, in a terminal.
local function program(...)
  local extra = { ... }
  return function(arguments)
    local cmd, why = require('codespec.config').command()
    if not cmd then
      error('codespec: ' .. why, 0)
    end
    vim.cmd.new()
    local buf = vim.api.nvim_get_current_buf()
    local line = vim.list_extend(vim.list_extend({ cmd[1] }, extra), arguments)
    local function on_exit(_, code)
      if code == NOT_RUN and vim.api.nvim_buf_is_valid(buf) then
        vim.api.nvim_buf_delete(buf, { force = true })
        vim.notify(('codespec: %s cannot be run'):format(cmd[1]), vim.log.levels.ERROR)
      end
    end
    if vim.fn.has('nvim-0.11') == 1 then
      vim.fn.jobstart(line, { term = true, env = environment(), on_exit = on_exit })
    else
      vim.fn.termopen(line, { env = environment(), on_exit = on_exit })
    end
  end
end

---About the file at hand, if there is one.
local function doctor()
  local name = vim.api.nvim_buf_get_name(0)
  program('doctor')({ vim.uv.fs_stat(name) and name or vim.fn.getcwd() })
end

---Why this is suggested at the cursor, or nothing.
local function explain()
  local buf = vim.api.nvim_get_current_buf()
  local name = vim.api.nvim_buf_get_name(buf)
  if name == '' or vim.bo[buf].buftype ~= '' then
    error('codespec: this is not a file', 0)
  end
  local saved, why = pcall(vim.cmd.update) -- the command line reads the file
  if not saved then
    error('codespec: not saved: ' .. tostring(why):gsub('^.-Vim.-:', ''), 0)
  end
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local before = vim.api.nvim_get_current_line():sub(1, col)
  program('explain')({ ('%s:%d:%d'):format(name, row, vim.fn.strchars(before) + 1) })
end

---@type table<string, { run: fun(arguments: string[]), values?: string[] }>
M.commands = {
  enable = { run = switch(true), values = scopes },
  disable = { run = switch(false), values = scopes },
  toggle = { run = switch(nil), values = scopes },
  snooze = { run = snooze, values = { '5', '15', '30', '60', 'off' } },
  status = {
    run = function()
      local status = require('codespec').status()
      vim.notify(('codespec: %s: %s'):format(status.kind, status.message))
    end,
  },
  restart = {
    run = function()
      need_setup()
      require('codespec').restart()
    end,
  },
  edits = {
    run = function()
      need_setup()
      require('codespec').list_edits()
    end,
  },
  doctor = { run = doctor },
  explain = { run = explain },
  log = { run = program('daemon', 'logs') },
  models = { run = program('models', 'list') },
  stats = { run = program('stats') },
}

---@param event vim.api.keyset.create_user_command.command_args
function M.run(event)
  local arguments = vim.list_slice(event.fargs, 2)
  local name = event.fargs[1] or 'status'
  local command = M.commands[name]
  local ok, message = pcall(function()
    if not command then
      error(('codespec: no command "%s", see :help codespec-commands'):format(name), 0)
    end
    command.run(arguments)
  end)
  if not ok then
    vim.notify(tostring(message), vim.log.levels.ERROR)
  end
end

---@return string[]
function M.names()
  local names = vim.tbl_keys(M.commands)
  table.sort(names)
  return names
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line, '%s+')
  local candidates = M.names()
  if #words > 2 then
    local command = M.commands[words[2]]
    candidates = #words == 3 and command and command.values or {}
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

return M
