/** The figures of the charts: the whole window once, then only what is new. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { api } from '../api.ts'
import { keys } from '../queries.ts'
import { type ChartSpan, joinPoints, type SeriesPoint, SPANS, sinceOf } from './series-window.ts'

export function useSeries(span: ChartSpan) {
  const client = useQueryClient()
  const { stepS, windowS, refetchMs } = SPANS[span]
  const queryKey = [...keys.series, span]
  return useQuery({
    queryKey,
    queryFn: async ({ signal }): Promise<SeriesPoint[]> => {
      const before = client.getQueryData<SeriesPoint[]>(queryKey) ?? []
      const sinceS = sinceOf(before, SPANS[span], Date.now() / 1000)
      const { points } = await api.series({ stepS, sinceS }, signal)
      return joinPoints(before, points, windowS)
    },
    refetchInterval: refetchMs,
    staleTime: refetchMs,
    // Points are only ever added: comparing all of them would be in vain.
    structuralSharing: false,
  })
}
