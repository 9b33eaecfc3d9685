/** A table of any length: only the rows in sight are in the page, and the next page of them is asked for in time. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import type { PagedList } from '../paged-list.ts'
import { ErrorNote, Skeleton } from './notes.tsx'
import { rowWindow } from './virtual-rows.ts'

export type Column<T> = {
  id: string
  title: ComponentChildren
  cell: (row: T) => ComponentChildren
  align?: 'start' | 'end'
  /** Any CSS width; what is left is shared by the others. */
  width?: string
  /** Hidden on narrow screens. */
  low?: boolean
  /** Takes what the others leave, however long its text is: what does not fit is cut off. */
  rest?: boolean
}

export type DataTableProps<T> = {
  /** Says what the table holds, for screen readers. */
  caption: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string | number
  /** Of all pages, where it is known. */
  total?: number
  /** Near the end of the rows: load more. Called again only after `rows` has changed. */
  onEnd?: () => void
  loading?: boolean
  empty?: ComponentChildren
  /** Makes rows open that page; the first column's cell should be a link as well, for the keyboard. */
  rowHref?: (row: T) => string
  rowPx?: number
  heightPx?: number
}

const LOADING_ROWS = 8

export function DataTable<T>(props: DataTableProps<T>) {
  const { caption, columns, rows, rowPx = 44, heightPx = 560, onEnd, loading } = props
  const [scrollPx, setScrollPx] = useState(0)
  const frame = useRef(0)
  const seen = rowWindow({ rows: rows.length, rowPx, scrollPx, heightPx })
  const isNearEnd = seen.to >= rows.length
  // Once for each change of the rows.
  useEffect(() => {
    if (isNearEnd && !loading) onEnd?.()
  }, [isNearEnd, rows.length, loading])
  if (rows.length === 0 && !loading) return <>{props.empty ?? null}</>
  const onScroll = (event: Event): void => {
    const { scrollTop } = event.currentTarget as HTMLElement
    cancelAnimationFrame(frame.current)
    frame.current = requestAnimationFrame(() => setScrollPx(scrollTop))
  }
  return (
    <section
      class="table-scroll"
      aria-label={caption}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
      tabIndex={0}
      style={{ maxBlockSize: heightPx }}
      onScroll={onScroll}
    >
      <table class="table" aria-rowcount={(props.total ?? rows.length) + 1} aria-busy={loading || undefined}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <th key={column.id} scope="col" class={classOf(column)} style={{ inlineSize: column.width }}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody style={{ '--row': `${rowPx}px` }}>
          <Spacer px={seen.beforePx} columns={columns.length} />
          {rows.slice(seen.from, seen.to).map((row, at) => (
            <Row key={props.keyOf(row)} row={row} index={seen.from + at + 2} table={props} />
          ))}
          <Spacer px={seen.afterPx} columns={columns.length} />
          {loading ? <LoadingRows columns={columns} rows={rows.length === 0 ? LOADING_ROWS : 1} /> : null}
        </tbody>
      </table>
    </section>
  )
}

function Row<T>({ row, index, table }: { row: T; index: number; table: DataTableProps<T> }) {
  const [, navigate] = useLocation()
  const href = table.rowHref?.(row)
  const open = (event: MouseEvent): void => {
    // Links and buttons inside do what they do; a selection of text is no click.
    const isInner =
      event.target instanceof Element && event.target.closest('a, button, input, label, summary')
    if (href && !isInner && !getSelection()?.toString()) navigate(href)
  }
  return (
    // The click is a larger target for the link in the first cell.
    <tr aria-rowindex={index} class={href ? 'is-link' : undefined} onClick={open}>
      {table.columns.map((column) => (
        <td key={column.id} class={classOf(column)}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  )
}

function LoadingRows<T>({ columns, rows }: { columns: readonly Column<T>[]; rows: number }) {
  return (
    <>
      {Array.from({ length: rows }, (_, at) => (
        <tr key={`loading-${at}`}>
          {columns.map((column) => (
            <td key={column.id} class={classOf(column)}>
              <Skeleton width="70%" />
            </td>
          ))}
        </tr>
      ))}
    </>
  )
}

function Spacer({ px, columns }: { px: number; columns: number }) {
  if (px <= 0) return null
  return (
    <tr class="table-spacer">
      <td colSpan={columns} style={{ blockSize: px }} />
    </tr>
  )
}

function classOf<T>({ align, low, rest }: Column<T>): string {
  return `${align === 'end' ? 'cell-end' : ''}${low ? ' only-wide' : ''}${rest ? ' cell-rest' : ''}`
}

/** A list that comes page by page, as a table; or why it does not come. */
/** Of rows with two lines. */
export const TWO_LINES_PX = 56

type Props<T> = Omit<DataTableProps<T>, 'rows' | 'loading' | 'onEnd'> & { list: PagedList<T> }

export function PagedTable<T>({ list, ...props }: Props<T>) {
  const { rows, error, refetch, isLoading, loadMore } = list
  if (error && rows.length === 0) return <ErrorNote error={error} retry={refetch} />
  return <DataTable {...props} rows={rows} loading={isLoading} onEnd={loadMore} />
}
