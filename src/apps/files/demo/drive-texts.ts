/** Words that the demo's OneDrive is made of. */

export const LINES: readonly string[] = [
  'Water the tomatoes before nine.',
  'Ask the neighbours about the fence.',
  'Three bids, all too high; call the second one again.',
  'Trains leave at ten past every hour.',
  'The key is with Maria until Sunday.',
  'Bring boots: the path by the lake floods.',
  'Half of it is paid, the rest at the end of the month.',
  'She liked the blue one better.',
  'Do not forget the birthday on the 14th.',
  'The roof holds, the gutter does not.',
  'Two loaves, cheese, apples, something sweet.',
  'Read chapter four again; the proof has a gap.',
]

export const NAMES: readonly string[] = [
  ...['Shopping', 'Meeting notes', 'Ideas', 'Travel plan', 'Recipe', 'Letter', 'Reading list', 'Repairs'],
  ...['Übersicht', 'Réunion', 'Skizze', 'Packing list'],
]

export const DEMO_TEXTS: readonly (readonly [path: string, text: string])[] = [
  [
    'Welcome.md',
    '# Welcome\n\nThis folder and a simulated OneDrive are kept in step. Change something here.\n',
  ],
  ['Documents/House/Roof.md', '# Roof\n\nThe roof holds, the gutter does not.\n'],
  ['Documents/House/Budget.txt', 'Paint 240\nGutter 610\nFence 1,150\n'],
  ['Documents/Travel/Köln.md', '# Köln\n\nTrains leave at ten past every hour.\n'],
  ['Documents/Travel/Packing.txt', 'boots\nraincoat\ncharger\n'],
  ['Documents/Letters/To Ada.md', 'Dear Ada,\n\nthe lake is frozen already.\n'],
  ['Projects/Boat/Plan.md', '# Boat\n\n1. Sand the hull\n2. Varnish\n3. Wait\n'],
  ['Projects/Boat/Parts.txt', 'varnish\nbrass screws\nrope\n'],
  ['Projects/Garden/Beds.md', '# Beds\n\nTomatoes by the wall, beans behind.\n'],
]

/** A picture of one dot; what follows in a file is not looked at. */
export const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
