---The end of a server that hears nothing: Neovim asks it to end and sends SIGTERM at most, which one
---that is stopped or busy does not hear either.
local M = {}

-- Who waits for the end is no child of ours, so that it does when Neovim has ended, which waits for
-- nobody. Ids of processes are not given again so soon.
local WAIT = '{ sleep 1; kill -0 $0 && sleep 1 && kill -9 $0; } 2>/dev/null &'
local WAIT_MS = 2000

---@class codespec.Process
---@field pid integer?
---@field ended boolean

---Kill one that was asked to end, unless it ends soon.
---@param process codespec.Process
function M.make_sure(process)
  if not process.pid or process.ended then
    return
  end
  local waiting
  local arguments = { '-c', WAIT, tostring(process.pid) }
  waiting = vim.uv.spawn('/bin/sh', { args = arguments, cwd = '/', detached = true }, function()
    waiting:close()
  end)
  if not waiting then -- no such program, as on Windows
    vim.defer_fn(function()
      if not process.ended then
        vim.uv.kill(process.pid, 'sigkill')
      end
    end, WAIT_MS)
  end
end

return M
