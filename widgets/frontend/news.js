// Which parts of a table have changed since it was last read. A table that is changed where it stands (patch.js) keeps a
// journal of what was; of any other one, the same object is the same table.

const JOURNAL_OF_TABLE = Symbol.for("autodiff-lab journal"); // as in patch.js, which may be in another module

export class News {
  // Keys of the parts that are new or others, none of them gone; null: any may be, and all have to be read.
  of(table) {
    const journal = table[JOURNAL_OF_TABLE];
    const known = this.table === table && this.journal === journal;
    const keys = known ? (journal?.slice(this.read) ?? []) : null;
    [this.table, this.journal, this.read] = [table, journal, journal?.length ?? 0];
    return keys?.every((key) => Object.hasOwn(table, key)) ? keys : null;
  }
}
