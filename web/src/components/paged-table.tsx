/** A list that comes page by page, as a table; or why it does not come. */
import type { PagedList } from '../paged-list.ts'
import { DataTable, type DataTableProps } from './data-table.tsx'
import { ErrorNote } from './notes.tsx'

/** Of rows with two lines. */
export const TWO_LINES_PX = 56

type Props<T> = Omit<DataTableProps<T>, 'rows' | 'loading' | 'onEnd'> & { list: PagedList<T> }

export function PagedTable<T>({ list, ...props }: Props<T>) {
  const { rows, error, refetch, isLoading, loadMore } = list
  if (error && rows.length === 0) return <ErrorNote error={error} retry={refetch} />
  return <DataTable {...props} rows={rows} loading={isLoading} onEnd={loadMore} />
}
