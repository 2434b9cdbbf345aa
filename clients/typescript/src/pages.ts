// Lists that come in pages.

/** One page of a list. `next` is the cursor of the following one, empty at the end. */
export interface Page<I> {
  results: I[];
  next: string;
}

/** The items of a list, which asks for the next page when it is needed: `for await (const goal of memory.goals())`. */
export class Pages<I> implements AsyncIterable<I> {
  readonly #load: (cursor: string) => Promise<Page<I>>;

  constructor(load: (cursor: string) => Promise<Page<I>>) {
    this.#load = load;
  }

  /** Yield the pages. */
  async *pages(): AsyncGenerator<Page<I>, void, undefined> {
    let cursor = "";
    do {
      const page = await this.#load(cursor);
      yield page;
      cursor = page.next;
    } while (cursor);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<I, void, undefined> {
    for await (const page of this.pages()) yield* page.results;
  }

  /** Return all items, or the first of them. */
  async toArray(limit = Infinity): Promise<I[]> {
    const items: I[] = [];
    if (limit <= 0) return items;
    for await (const item of this) if (items.push(item) >= limit) break;
    return items;
  }
}

/** Return the cursor of a link to a page. */
export function readCursor(link: string | null | undefined): string {
  return link ? (new URL(link, "http://service").searchParams.get("cursor") ?? "") : "";
}
