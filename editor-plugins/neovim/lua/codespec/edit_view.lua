---Drawing a next edit: old text struck through, new text beside it, a sign, and a hint that says where
---it lies and how many there are.
local api = vim.api
local M = {}

M.namespace = api.nvim_create_namespace('codespec.next_edit')
local SIGN = '»'
local drawn = {} ---@type table<integer, true> buffers

---@class codespec.Placed An edit in a buffer that is loaded.
---@field buf integer
---@field row integer From 0, as `end_row`; columns in bytes.
---@field col integer
---@field end_row integer
---@field end_col integer
---@field old string[] The lines between.
---@field new string[] What is to stand there.

---Bytes that two texts have in common at the start and at the end; no character is cut.
---@param a string
---@param b string
---@return integer before
---@return integer after
local function common(a, b)
  local n, before, after = math.min(#a, #b), 0, 0
  while before < n and a:byte(before + 1) == b:byte(before + 1) do
    before = before + 1
  end
  while after < n - before and a:byte(#a - after) == b:byte(#b - after) do
    after = after + 1
  end
  local function is_within(text, at)
    local byte = text:byte(at)
    return byte ~= nil and byte >= 0x80 and byte < 0xC0
  end
  while before > 0 and (is_within(a, before + 1) or is_within(b, before + 1)) do
    before = before - 1
  end
  while after > 0 and is_within(a, #a - after + 1) do
    after = after - 1
  end
  return before, after
end

---@param buf integer
---@param row integer
---@param col integer
---@param options vim.api.keyset.set_extmark
local function put(buf, row, col, options)
  drawn[buf] = true
  options.undo_restore = false
  pcall(api.nvim_buf_set_extmark, buf, M.namespace, row, col, options)
end

---@param lines string[]
---@param tabstop integer
local function virtual(lines, tabstop)
  return vim.tbl_map(function(line)
    return { { (line:gsub('\t', (' '):rep(tabstop))), 'CodespecEditNew' } }
  end, lines)
end

---Draw what the edit takes away and what it puts there.
---@param placed codespec.Placed
function M.show(placed)
  local buf, old, new = placed.buf, placed.old, placed.new
  local tabstop = vim.bo[buf].tabstop
  put(buf, placed.row, 0, { sign_text = SIGN, sign_hl_group = 'CodespecEditSign' })
  if #old == 1 and #new == 1 then
    local before, after = common(old[1], new[1])
    local col, end_col = placed.col + before, placed.end_col - after
    if end_col > col then
      put(buf, placed.row, col, { end_col = end_col, hl_group = 'CodespecEditOld' })
    end
    local text = new[1]:sub(before + 1, #new[1] - after):gsub('\t', (' '):rep(tabstop))
    if text ~= '' then
      put(buf, placed.row, end_col, {
        virt_text = { { text, 'CodespecEditNew' } },
        virt_text_pos = 'inline',
      })
    end
    return
  end
  if placed.row ~= placed.end_row or placed.col ~= placed.end_col then
    put(buf, placed.row, placed.col, {
      end_row = placed.end_row,
      end_col = placed.end_col,
      hl_group = 'CodespecEditOld',
      hl_eol = true,
    })
  end
  local lines = vim.list_slice(new)
  -- Whole lines end with an empty one, or begin with one behind the buffer's last line.
  local is_above = lines[#lines] == '' and #lines > 1 and placed.col == 0
  if is_above then
    lines[#lines] = nil
  elseif lines[1] == '' and #lines > 1 then
    table.remove(lines, 1)
  end
  if #lines > 0 and table.concat(lines) ~= '' then
    local is_insertion = placed.row == placed.end_row and placed.col == placed.end_col
    put(buf, is_insertion and placed.row or placed.end_row, 0, {
      virt_lines = virtual(lines, tabstop),
      virt_lines_above = is_insertion and is_above,
    })
  end
end

---Say at the end of the cursor's line where the edit lies.
---@param buf integer
---@param row integer From 0.
---@param words string
function M.hint(buf, row, words)
  put(buf, row, 0, { virt_text = { { '  ' .. words, 'CodespecEditHint' } }, virt_text_pos = 'eol' })
end

---Remove all of it.
function M.hide()
  for buf in pairs(drawn) do
    if api.nvim_buf_is_valid(buf) then
      api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1)
    end
  end
  drawn = {}
end

return M
