/** The tree: any number of rows, of which only those in sight are drawn. Arrow keys walk through it as in any tree. */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Button } from '../../../../web/src/components/button.tsx'
import { Icon } from '../../../../web/src/components/icon.tsx'
import { EmptyNote, Skeleton } from '../../../../web/src/components/notes.tsx'
import { Bytes, Time } from '../../../../web/src/components/values.tsx'
import { rowWindow } from '../../../../web/src/components/virtual-rows.ts'
import type { TreeItem } from '../api/schemas.ts'
import { ITEM_STATES } from './folder-state.ts'
import { parentRow, rowAfterKey, type TreeRow } from './tree-rows.ts'
import { useTree } from './use-tree.ts'

const ROW_PX = 40
const HEIGHT_PX = 560

export type TreeViewProps = { folder: string; selected: string; onSelect: (node: string) => void }

export function TreeView({ folder, selected, onSelect }: TreeViewProps) {
  const tree = useTree(folder)
  const { rows } = tree
  const id = useId()
  const frame = useRef<HTMLDivElement>(null)
  const [scrollPx, setScrollPx] = useState(0)
  const [at, setAt] = useState(0)
  const active = Math.min(at, rows.length - 1)
  const seen = rowWindow({ rows: rows.length, rowPx: ROW_PX, scrollPx, heightPx: HEIGHT_PX })
  const shown = rows.slice(seen.from, seen.to)
  const more = shown.find((row) => row.kind === 'more' && row.error === undefined)
  useEffect(() => {
    if (more?.kind === 'more') void tree.loadMore(more.folder)
  }, [more?.key, rows.length])
  const go = (to: number): void => {
    setAt(to)
    const box = frame.current
    if (!box) return
    const [top, end] = [to * ROW_PX, (to + 1) * ROW_PX]
    if (top < box.scrollTop) box.scrollTop = top
    else if (end > box.scrollTop + box.clientHeight) box.scrollTop = end - box.clientHeight
  }
  const press = (event: KeyboardEvent): void => {
    const row = rows[active]
    const to = rowAfterKey(rows, active, event.key) ?? besides(event.key, row)
    if (to === undefined) return
    event.preventDefault()
    if (typeof to === 'number') go(to)
  }
  /** Keys that open, close and choose: true where one did. */
  const besides = (key: string, row: TreeRow | undefined): true | number | undefined => {
    if (row?.kind !== 'item') return undefined
    const { item } = row
    const isFolder = item.type === 'folder'
    if (key === 'Enter' || key === ' ') {
      onSelect(item.node)
      if (isFolder && key === 'Enter') tree.toggle(item.node)
    } else if (key === 'ArrowRight' && isFolder) {
      if (row.isOpen) return Math.min(rows.length - 1, active + 1)
      tree.toggle(item.node, true)
    } else if (key === 'ArrowLeft') {
      if (!row.isOpen) return parentRow(rows, active)
      tree.toggle(item.node, false)
    } else return undefined
    return true
  }
  if (tree.isLoaded && rows.length === 0) {
    return <EmptyNote title="Nothing here yet">Neither the folder nor OneDrive has anything in it.</EmptyNote>
  }
  if (!tree.isLoaded && rows[0]?.kind === 'more' && rows[0].error === undefined) {
    return <Skeleton height="14rem" />
  }
  const isRowShown = active >= seen.from && active < seen.to
  return (
    <div
      ref={frame}
      class="tree"
      role="tree"
      aria-label="Files and folders"
      tabIndex={0}
      aria-activedescendant={isRowShown ? `${id}-${active}` : undefined}
      style={{ maxBlockSize: HEIGHT_PX }}
      onKeyDown={press}
      onScroll={(event) => setScrollPx(event.currentTarget.scrollTop)}
    >
      <div role="none" style={{ blockSize: seen.beforePx }} />
      {shown.map((row, offset) => {
        const index = seen.from + offset
        const shared = { id: `${id}-${index}`, isActive: index === active }
        return row.kind === 'item' ? (
          <ItemRow
            key={row.key}
            {...shared}
            row={row}
            isSelected={row.item.node === selected}
            onClick={() => {
              setAt(index)
              onSelect(row.item.node)
              if (row.item.type === 'folder') tree.toggle(row.item.node)
            }}
          />
        ) : (
          <MoreRow key={row.key} {...shared} row={row} onRetry={() => void tree.loadMore(row.folder)} />
        )
      })}
      <div role="none" style={{ blockSize: seen.afterPx }} />
    </div>
  )
}

type RowProps = { id: string; isActive: boolean }

function ItemRow(
  props: RowProps & { row: TreeRow & { kind: 'item' }; isSelected: boolean; onClick: () => void },
) {
  const { row, isActive, isSelected } = props
  const { item, depth, isOpen } = row
  const isFolder = item.type === 'folder'
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree takes the keys for all of its rows
    <div
      id={props.id}
      class={`tree-row${isActive ? ' is-active' : ''}${isSelected ? ' is-selected' : ''}`}
      role="treeitem"
      tabIndex={-1}
      aria-level={depth + 1}
      aria-posinset={row.place}
      aria-setsize={row.siblings}
      aria-expanded={isFolder ? isOpen : undefined}
      aria-selected={isSelected}
      style={{ '--depth': depth }}
      onClick={props.onClick}
    >
      <span class={`tree-fold${isFolder ? '' : ' is-leaf'}${isOpen ? ' is-open' : ''}`}>
        {isFolder ? <Icon name="next" /> : null}
      </span>
      <Icon name={isFolder ? 'folder' : 'file'} />
      <span class="tree-name truncate" title={item.name}>
        {item.name}
      </span>
      <ItemState item={item} />
      <span class="tree-size only-wide">{item.type === 'file' ? <Bytes value={item.size} /> : null}</span>
      <span class="tree-time only-wide">{isFolder ? null : <Time at={item.modifiedMs} show="day" />}</span>
    </div>
  )
}

export function ItemState({ item }: { item: Pick<TreeItem, 'state' | 'text' | 'isActive'> }) {
  const { text, tone, icon } = ITEM_STATES[item.state]
  if (item.state === 'in-step') {
    return (
      <span class="tree-state tone-neutral" title="In step">
        <Icon name={icon} />
        <span class="visually-hidden">, in step</span>
      </span>
    )
  }
  return (
    <span class={`tree-state tone-${tone}`} title={item.text}>
      <Icon name={icon} />
      <span class="tree-state-text">{text}</span>
    </span>
  )
}

function MoreRow(props: RowProps & { row: TreeRow & { kind: 'more' }; onRetry: () => void }) {
  const { row, isActive } = props
  return (
    <div
      id={props.id}
      class={`tree-row${isActive ? ' is-active' : ''}`}
      role="treeitem"
      tabIndex={-1}
      aria-level={row.depth + 1}
      aria-busy={row.error === undefined || undefined}
      style={{ '--depth': row.depth }}
    >
      <span class="tree-fold is-leaf" />
      {row.error === undefined ? (
        <>
          <Skeleton width="12rem" />
          <span class="visually-hidden">Loading</span>
        </>
      ) : (
        <>
          <span class="is-danger">This could not be loaded.</span>
          <Button small icon="retry" onClick={props.onRetry}>
            Try again
          </Button>
        </>
      )}
    </div>
  )
}
