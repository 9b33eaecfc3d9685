/** The forms in which mail is written. */
export const EXPORT_FORMATS = ['mbox', 'eml', 'maildir'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]
