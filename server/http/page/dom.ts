// Elements of the page. Texts come from a status, and so from strangers: they are only ever put in
// as text. What has not changed is left alone, so that a reader's selection and place stay.

export type Tone = ""|"good"|"warning"|"alarm";

export interface Cell {
  text: string;
  tone?: Tone;
  hint?: string;
}

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element;
}

export function make<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Record<string, string> = {},
    text = "",
    ): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setTone(element: Element, tone: Tone): void {
  if (element.getAttribute("class") !== tone) element.setAttribute("class", tone);
}

/** Makes `parent` have `size` children, made by `child`. Returns them. */
export function children(parent: Element, size: number, child: () => Element): Element[] {
  while (parent.children.length > size) parent.lastElementChild?.remove();
  while (parent.children.length < size) parent.append(child());
  return Array.from(parent.children);
}

/** A table with a caption, in a place that scrolls where it is narrow. */
export class Table {
  private readonly body = make("tbody");
  private readonly table = make("table");
  private readonly nothing: HTMLParagraphElement;

  constructor(
      parent: HTMLElement,
      caption: string,
      private readonly columns: string[],
      nothing: string,
  ) {
    const head = make("thead");
    const row = make("tr");
    row.append(...columns.map((column) => make("th", {scope: "col"}, column)));
    head.append(row);
    this.table.append(make("caption", {}, caption), head, this.body);
    const scrolls =
        make("div", {class: "scrolls", tabindex: "0", role: "group", "aria-label": caption});
    scrolls.append(this.table);
    this.nothing = make("p", {class: "note"}, nothing);
    parent.append(scrolls, this.nothing);
  }

  show(rows: Cell[][]): void {
    const scrolls = this.table.parentElement;
    if (scrolls !== null) scrolls.hidden = rows.length === 0;
    this.nothing.hidden = rows.length > 0;
    const places = children(this.body, rows.length, () => this.makeRow());
    places.forEach((place, i) => {
      rows[i]?.forEach((cell, column) => {
        const element = place.children[column];
        if (element === undefined) return;
        setText(element, cell.text);
        setTone(element, cell.tone ?? "");
        if (cell.hint !== undefined) element.setAttribute("title", cell.hint);
      });
    });
  }

  private makeRow(): HTMLTableRowElement {
    const row = make("tr");
    this.columns.forEach((_, column) => {
      row.append(column === 0 ? make("th", {scope: "row"}) : make("td"));
    });
    return row;
  }
}

/** A list of names and what they are. */
export function showPairs(list: HTMLElement, pairs: [string, Cell][]): void {
  const places = children(list, pairs.length, () => {
    const place = make("div");
    place.append(make("dt"), make("dd"));
    return place;
  });
  places.forEach((place, i) => {
    const pair = pairs[i];
    const [name, value] = Array.from(place.children);
    if (pair === undefined || name === undefined || value === undefined) return;
    setText(name, pair[0]);
    setText(value, pair[1].text);
    setTone(value, pair[1].tone ?? "");
    let hint = place.children[2];
    if (hint === undefined && pair[1].hint !== undefined) {
      hint = make("dd", {class: "hint"});
      place.append(hint);
    }
    if (hint !== undefined) setText(hint, pair[1].hint ?? "");
  });
}
