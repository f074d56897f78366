---Where programs come from: folders of the PATH that are named in full, as others are the working
---folder's, and on no way that leads through a workspace, which may hold a program of any name.
local M = {}

local MARKS = { '.git', '.hg', '.jj', '.svn', '.codespec.toml' }
local MAX_LINKS = 40
local WINDOWS = vim.fn.has('win32') == 1

---@param path string
local function is_whole(path)
  return vim.startswith(path, '/') or (WINDOWS and path:match('^%a:[/\\]') ~= nil)
end

---The same for all names of a folder.
---@param path string
---@return string?
local function identity(path)
  local seen = vim.uv.fs_stat(path)
  return seen and ('%d:%d'):format(seen.dev, seen.ino)
end

---The working folder, and what workspaces that and the file at hand lie in. Neither the whole disk
---nor the home folder, which hold the user's own programs.
---@return table<string, true>
local function workspaces()
  local here = vim.uv.cwd()
  local found = {}
  for _, start in ipairs({ here or '/', vim.fs.dirname(vim.api.nvim_buf_get_name(0)) }) do
    for _, mark in ipairs(vim.fs.find(MARKS, { upward = true, path = start, limit = math.huge })) do
      found[identity(vim.fs.dirname(mark)) or ''] = true
    end
  end
  found[here and identity(here) or ''] = true
  found[''] = nil
  found[identity('/') or ''] = nil
  found[identity(vim.uv.os_homedir() or '/') or ''] = nil
  return found
end

---@param path string
local function parts_of(path)
  return vim.split(path:gsub('^%a:', ''), WINDOWS and '[/\\]' or '/', { trimempty = true })
end

---Whether what the system comes by when it follows a whole path, links included, is a workspace.
---@param path string
---@param roots table<string, true>
local function leads_through(path, roots)
  local at = path:match('^%a:') or ''
  local rest = parts_of(path)
  local n_links = 0
  while #rest > 0 do
    local name = table.remove(rest, 1)
    at = name == '..' and vim.fs.dirname(at) or name == '.' and at or at .. '/' .. name
    if roots[identity(at) or ''] then
      return true
    end
    local target = vim.uv.fs_readlink(at)
    if target then
      n_links = n_links + 1
      if n_links > MAX_LINKS then
        return true
      end
      at = is_whole(target) and (target:match('^%a:') or '') or vim.fs.dirname(at)
      rest = vim.list_extend(parts_of(target), rest)
    end
  end
  return false
end

---The program of that name in the first of these folders that has it.
---@param folders string[]
---@param name string
---@return string?
local function find_in(folders, name)
  local roots = workspaces()
  for _, folder in ipairs(folders) do
    if is_whole(folder) then
      local path = folder .. '/' .. name
      local program = vim.fn.exepath(path)
      if program ~= '' and not leads_through(path, roots) and not leads_through(program, roots) then
        return program
      end
    end
  end
  return nil
end

---The whole path of a program, or nil. `name`: of one on the PATH, or a whole path, which the user
---chose.
---@param name string
---@return string?
function M.find(name)
  if is_whole(name) then
    local program = vim.fn.exepath(name)
    return program ~= '' and program or nil
  end
  if name:find(WINDOWS and '[/\\]' or '/') then
    return nil
  end
  return find_in(vim.split(vim.env.PATH or '', WINDOWS and ';' or ':'), name)
end

---The whole path of a program where uv and pipx put programs, or nil.
---@param name string
---@return string?
function M.find_tool(name)
  local folders = {}
  for _, variable in ipairs({ 'UV_TOOL_BIN_DIR', 'PIPX_BIN_DIR', 'XDG_BIN_HOME' }) do
    table.insert(folders, vim.env[variable])
  end
  table.insert(folders, (vim.uv.os_homedir() or '') .. '/.local/bin')
  return find_in(folders, name)
end

return M
