---`:checkhealth codespec`
local M = {}

local health = vim.health

local function check_neovim()
  local version = tostring(vim.version())
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok('Neovim ' .. version)
  else
    health.error(('Neovim %s is too old'):format(version), 'Install 0.10 or newer.')
  end
end

---@return boolean Whether there is a program, in whatever state.
local function check_server()
  local cmd, why = require('codespec.config').command()
  if not cmd then
    health.error(why or '')
    return false
  end
  local ok, done = pcall(function()
    return vim.system({ cmd[1], '--version' }, { text = true }):wait(20000)
  end)
  if ok and done.code == 0 then
    health.ok(('%s: %s'):format(cmd[1], vim.trim(done.stdout)))
  else
    local said = ok and done.stderr or tostring(done):gsub('^.-:%d+: ', '')
    health.error(('%s --version fails: %s'):format(cmd[1], vim.trim(said or '')), {
      'Run it in a shell to see why.',
      'Run `make clean env` in the checkout.',
    })
  end
  return true
end

local function check_state()
  local client = require('codespec.client')
  if client.failure then
    health.error(client.failure, 'What it said last is in ' .. require('vim.lsp.log').get_filename() .. '.')
  elseif not client.id then
    health.info('The server is not running: no file is open that it serves.')
  elseif not client.status then
    health.info('The server is starting.')
  else
    local report = client.status.kind == 'Error' and health.error or health.ok
    report(('The server says: %s'):format(client.status.message))
  end
end

local function check_keys()
  for _, map in ipairs(vim.api.nvim_get_keymap('i')) do
    -- A function without a description names what it calls all the same.
    local ok, code = pcall(string.dump, map.callback)
    local rhs = (map.rhs or '') .. (map.desc or '') .. (ok and code or '')
    if not map.lhs:find('^<Plug>') and rhs:find('codespec') then
      health.ok(('%s: %s'):format(map.lhs, map.desc or map.rhs or 'a function'))
      return
    end
  end
  health.info('No mapping names codespec. If none accepts suggestions, see |codespec-mappings|.')
end

local function check_neighbours()
  local config = require('codespec.config')
  if config.current.ghost_text == 'builtin' then
    health.info('vim.lsp.inline_completion draws, and waits 200 ms after each key.')
  end
  for _, name in ipairs({ 'copilot', 'supermaven-nvim', 'codeium', 'minuet' }) do
    if package.loaded[name] then
      health.warn(name .. ' draws suggestions, too', 'Switch one of them off.')
    end
  end
end

function M.check()
  health.start('codespec')
  check_neovim()
  if not require('codespec').is_set_up() then
    health.error('setup() was not called', "Call require('codespec').setup().")
  end
  if check_server() then
    check_state()
  end
  check_keys()
  check_neighbours()
end

return M
