// Text as a terminal shows it: colours, carriage returns that redraw a line, a cursor that goes up.

export interface Style {
  fg?: string; // "1" to "15": a class; or "#rrggbb"
  bg?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
}
export interface Span {
  text: string;
  style: Style;
}
const PLAIN: Style = {};
const COLUMNS_MAX = 2000; // of a line that is redrawn in place; a longer one is left as it is
const SPANS_MAX = 200; // and of as many colours: each redraw walks through them
const LINES_MAX = 50_000; // a tab does not hold the sixteen million that may be printed
export const LINES_HEAD = 1000; // these stay, and of the others the newest
const LINES_DROP = 10_000; // at a time
const CURSOR_MAX = 500; // how far right the cursor is sent: a few bytes must not become a line of blanks
const hex = (n: number) => n.toString(16).padStart(2, "0");

function colour256(n: number): string {
  if (n < 16) return String(n);
  if (n >= 232) return "#" + hex(8 + (n - 232) * 10).repeat(3);
  const level = (v: number) => hex(v ? 55 + v * 40 : 0);
  return "#" + level(Math.floor((n - 16) / 36)) + level(Math.floor((n - 16) / 6) % 6) + level((n - 16) % 6);
}

// Appends a run of text: most lines have one style and are never redrawn, and stay one string.
class Line {
  spans: Span[] = [];
  length = 0;
  version = 0;

  // What stands between two columns.
  cut(from: number, to: number): Span[] {
    const found: Span[] = [];
    let at = 0;
    for (const { text, style } of this.spans) {
      const piece = text.slice(Math.max(0, from - at), Math.max(0, to - at));
      if (piece) found.push({ text: piece, style });
      at += text.length;
      if (at >= to) break;
    }
    return found;
  }

  private take(spans: Span[]) {
    this.spans = [];
    this.length = 0;
    for (const { text, style } of spans) {
      const last = this.spans.at(-1);
      if (last && last.style === style) last.text += text;
      else this.spans.push({ text, style });
      this.length += text.length;
    }
  }

  write(at: number, text: string, style: Style) {
    this.version++;
    if (at >= this.length || this.length > COLUMNS_MAX || this.spans.length > SPANS_MAX) {
      const gap = Math.max(0, Math.min(at, COLUMNS_MAX) - this.length);
      const last = this.spans.at(-1);
      if (gap === 0 && last && last.style === style) last.text += text;
      else this.spans.push({ text: " ".repeat(gap) + text, style });
      this.length += gap + text.length;
      return;
    }
    this.take([...this.cut(0, at), { text, style }, ...this.cut(at + text.length, Infinity)]);
  }

  erase(from: number, to: number) {
    this.version++;
    if (to >= this.length) this.take(this.cut(0, from));
    else this.take([...this.cut(0, from), { text: " ".repeat(to - from), style: PLAIN }, ...this.cut(to, Infinity)]);
  }
}

export class Terminal {
  lines: Line[] = [new Line()];
  dropped = 0; // lines that are kept no more, after the first LINES_HEAD
  version = 0;
  private row = 0;
  private column = 0;
  private style: Style = PLAIN;
  private rest = ""; // an escape sequence that is not whole yet

  get lineCount(): number {
    const last = this.lines.at(-1)!;
    return this.lines.length - (last.length === 0 && this.lines.length > 1 ? 1 : 0);
  }

  get text(): string {
    const all = this.lines.map((l) => l.spans.map((s) => s.text).join(""));
    if (this.dropped) all.splice(LINES_HEAD, 0, `[${this.dropped} lines are left out here]`);
    return all.join("\n");
  }

  feed(piece: string) {
    const text = this.rest + piece;
    const torn = /\x1b(\[[0-9;?]*|\][^\x07\x1b]{0,200})?$/.exec(text);
    this.rest = torn ? torn[0] : "";
    this.version++;
    const whole = torn ? text.slice(0, torn.index) : text;
    // eslint-disable-next-line no-control-regex
    const part = /\x1b\[([0-9;?]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|\n+|[\r\b\x07]|[^\x1b\n\r\b\x07]+/gs;
    for (const found of whole.matchAll(part)) this.act(found[0], found[1], found[2]);
  }

  private act(text: string, args: string | undefined, final: string | undefined) {
    if (final !== undefined) this.control(args ?? "", final);
    else if (text[0] === "\n") this.down(text.length);
    else if (text === "\r") this.column = 0;
    else if (text === "\b") this.column = Math.max(0, this.column - 1);
    else if (text !== "\x07" && text[0] !== "\x1b") {
      this.lines[this.row].write(this.column, text, this.style);
      this.column += text.length;
    }
  }

  private down(by: number) {
    this.column = 0;
    for (; by > 0; by--) {
      this.row++;
      if (this.row < this.lines.length) continue;
      this.lines.push(new Line());
      if (this.lines.length <= LINES_MAX) continue;
      this.lines.splice(LINES_HEAD, LINES_DROP);
      this.dropped += LINES_DROP;
      this.row -= LINES_DROP;
    }
  }

  private control(args: string, final: string) {
    const numbers = args.split(";").map((n) => parseInt(n, 10) || 0);
    const n = Math.max(1, numbers[0]);
    const line = this.lines[this.row];
    if (final === "m") this.paint(numbers);
    else if (final === "A") this.row = Math.max(0, this.row - n);
    else if (final === "B") this.row = Math.min(this.lines.length - 1, this.row + n);
    else if (final === "C") this.column = Math.min(CURSOR_MAX, this.column + n);
    else if (final === "D") this.column = Math.max(0, this.column - n);
    else if (final === "G") this.column = Math.min(CURSOR_MAX, n - 1);
    else if (final === "K" && numbers[0] === 0) line.erase(this.column, Infinity);
    else if (final === "K") line.erase(0, numbers[0] === 2 ? Infinity : this.column);
    else if (final === "J" && numbers[0] >= 2) {
      this.lines = [new Line()];
      this.dropped = 0;
      this.row = this.column = 0;
    }
  }

  private paint(codes: number[]) {
    let s: Style = { ...this.style };
    for (let i = 0; i < codes.length; i++) {
      const c = codes[i];
      if (c === 0) s = {};
      else if (c === 1) s.bold = true;
      else if (c === 2) s.dim = true;
      else if (c === 3) s.italic = true;
      else if (c === 4) s.underline = true;
      else if (c === 7) s.inverse = true;
      else if (c === 22) s.bold = s.dim = undefined;
      else if (c === 23) s.italic = undefined;
      else if (c === 24) s.underline = undefined;
      else if (c === 27) s.inverse = undefined;
      else if (c === 39) s.fg = undefined;
      else if (c === 49) s.bg = undefined;
      else if (c >= 30 && c <= 37) s.fg = String(c - 30);
      else if (c >= 90 && c <= 97) s.fg = String(c - 82);
      else if (c >= 40 && c <= 47) s.bg = String(c - 40);
      else if (c >= 100 && c <= 107) s.bg = String(c - 92);
      else if (c === 38 || c === 48) {
        const colour = codes[i + 1] === 5 ? colour256(codes[i + 2] & 255)
          : "#" + [2, 3, 4].map((k) => hex((codes[i + k] ?? 0) & 255)).join("");
        s[c === 38 ? "fg" : "bg"] = colour;
        i += codes[i + 1] === 5 ? 2 : 4;
      }
    }
    this.style = Object.values(s).some(Boolean) ? s : PLAIN;
  }
}
