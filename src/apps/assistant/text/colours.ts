/** Colours as mail writes them, and whether one can be read on the other. */

/** Red, green, blue from 0 to 255, and how opaque from 0 to 1. */
export type Colour = readonly [red: number, green: number, blue: number, alpha: number]

export const BLACK: Colour = [0, 0, 0, 1]
export const WHITE: Colour = [255, 255, 255, 1]

/** Text below it is not seen. White on #f0f0f0 has 1.14; the palest grey that designers use on white has 1.6. */
const CONTRAST_MIN = 1.25
const ALPHA_MIN = 0.12

const NAMES =
  'aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50 cornflowerblue 6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000 darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f darkslategrey 2f4f4f darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff dimgray 696969 dimgrey 696969 dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0 forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700 goldenrod daa520 gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0 hotpink ff69b4 indianred cd5c5c indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6 lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow fafad2 lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa lightskyblue 87cefa lightslategray 778899 lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00 limegreen 32cd32 linen faf0e6 magenta ff00ff maroon 800000 mediumaquamarine 66cdaa mediumblue 0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 olive 808000 olivedrab 6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 paleturquoise afeeee palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum dda0dd powderblue b0e0e6 purple 800080 rebeccapurple 663399 red ff0000 rosybrown bc8f8f royalblue 4169e1 saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080 thistle d8bfd8 tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 window ffffff windowtext 000000 canvas ffffff canvastext 000000 yellow ffff00 yellowgreen 9acd32'
const BY_NAME = new Map<string, Colour>()
for (const [, name, hex] of NAMES.matchAll(/(\w+) ([0-9a-f]{6})/g)) BY_NAME.set(name!, hexColour(hex!)!)
BY_NAME.set('transparent', [0, 0, 0, 0])

/** Undefined for what a reader's program would ignore; `unknown` for a way of writing that is not read here. */
export function colourOf(text: string): Colour | 'unknown' | undefined {
  const value = text.trim().toLowerCase()
  const named = BY_NAME.get(value)
  if (named) return named
  const bare = /^#?([0-9a-f]{3,8})$/.exec(value)?.[1]
  if (bare !== undefined) return hexColour(bare)
  const call = /^(rgba?|hsla?)\(([^()]{1,80})\)$/.exec(value)
  if (call) return callColour(call[1]!, call[2]!)
  return value.includes('(') ? 'unknown' : undefined
}

function hexColour(hex: string): Colour | undefined {
  const digits = hex.length <= 4 ? [...hex].map((digit) => digit + digit).join('') : hex
  if (digits.length !== 6 && digits.length !== 8) return undefined
  const at = (from: number): number => Number.parseInt(digits.slice(from, from + 2), 16)
  return [at(0), at(2), at(4), digits.length === 8 ? at(6) / 255 : 1]
}

function callColour(name: string, list: string): Colour | 'unknown' {
  const parts = list.split(/[\s,/]+/).filter((part) => part !== '')
  const numbers = parts.map((part) => Number.parseFloat(part))
  if (numbers.length < 3 || numbers.some((number) => !Number.isFinite(number))) return 'unknown'
  const alpha = parts[3] === undefined ? 1 : numbers[3]! / (parts[3].endsWith('%') ? 100 : 1)
  if (name.startsWith('hsl')) return [...hslColour(numbers[0]!, numbers[1]!, numbers[2]!), alpha]
  const channel = (at: number): number =>
    Math.min(255, Math.max(0, parts[at]!.endsWith('%') ? (numbers[at]! * 255) / 100 : numbers[at]!))
  return [channel(0), channel(1), channel(2), alpha]
}

function hslColour(hue: number, saturation: number, lightness: number): [number, number, number] {
  const [s, l] = [saturation / 100, lightness / 100]
  const channel = (n: number): number => {
    const k = (((n + hue / 30) % 12) + 12) % 12
    return 255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1)))
  }
  return [channel(0), channel(8), channel(4)]
}

/** What is seen of a colour on another. */
export function over(colour: Colour, below: Colour): Colour {
  const mix = (at: 0 | 1 | 2): number => colour[at] * colour[3] + below[at] * (1 - colour[3])
  return [mix(0), mix(1), mix(2), 1]
}

/** The contrast of WCAG 2: 1 for the same colour, 21 for black on white. */
export function canBeRead(text: Colour, background: Colour): boolean {
  if (text[3] < ALPHA_MIN) return false
  const [one, other] = [luminance(over(text, background)), luminance(background)]
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) >= CONTRAST_MIN
}

function luminance(colour: Colour): number {
  const part = (at: 0 | 1 | 2): number => {
    const share = colour[at] / 255
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }
  return 0.2126 * part(0) + 0.7152 * part(1) + 0.0722 * part(2)
}
