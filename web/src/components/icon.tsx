/** Small line drawings beside words; never without words, so hidden from screen readers. */

const PATHS = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20',
  work: 'M4 7h16M4 12h10M4 17h13',
  archive: 'M4 5h16v4H4zM6 9v10h12V9M10 13h4',
  settings: 'M5 8h8M17 8h2M15 6v4M5 16h2M11 16h8M9 14v4',
  alert: 'M12 4 3 19.5h18zM12 10v4.5M12 17.2v.1',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  pause: 'M8 5v14M16 5v14',
  play: 'M8 5.5v13l10.5-6.5z',
  retry: 'M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1 1M17.4 17.4l1 1M5.6 18.4l1-1M17.4 6.6l1-1',
  moon: 'M19.5 14A8 8 0 0 1 10 4.5 8 8 0 1 0 19.5 14z',
  auto: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
  close: 'M6 6l12 12M18 6 6 18',
  next: 'm9 5 7 7-7 7',
  back: 'm15 5-7 7 7 7',
  external: 'M10 5H5v14h14v-5M14 5h5v5M19 5l-8 8',
  folder: 'M3.5 18.5V6h6l2 2.5h9v10z',
  upload: 'M12 15.5V4.5M7.5 9 12 4.5 16.5 9M5 20h14',
  file: 'M7 3.5h7l4 4v13H7zM14 3.5v4h4',
  mail: 'M4 6h16v12H4zM4 7l8 6 8-6',
  person: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20c.6-3.6 3.4-5.5 7-5.5s6.4 1.9 7 5.5',
  download: 'M12 4v11M7.5 11 12 15.5 16.5 11M5 20h14',
  undo: 'M8 5 4 9l4 4M4 9h10a5.5 5.5 0 0 1 0 11h-3',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}
