/** How a thing is meant: the accent for what goes well, the others for what needs a look. */
export type Tone = 'neutral' | 'accent' | 'warn' | 'danger'
