//go:build !local

package postgres

import (
	"strconv"
	"strings"
	"time"

	"scrimp/internal/store/layout"
)

// statement builds the append as one statement, hence one transaction and one round trip. It begins with the fence:
// if the epoch is past or the log ends elsewhere, there is no row and nothing is written. It leaves out tables
// without new rows, since each costs the database time and most appends contain one event.
func (c *columns) statement(epoch uint64, from, to layout.Tail, lease time.Duration) (sql string, args []any) {
	var b appending
	b.WriteString("WITH fence AS (UPDATE leader SET seq = " + b.arg(int64(to.End)) + ", kept = " + b.arg(int64(to.Kept)) +
		", until = clock_timestamp() + " + b.arg(lease) + "::interval WHERE epoch = " + b.arg(int64(epoch)) + " AND seq = " +
		b.arg(int64(from.End)) + " RETURNING 1)")
	if e := &c.events; len(e.seq) > 0 {
		b.insert("event", "seq:bigint at:bigint gap:bigint tenant:integer kind:integer key:text event:text facts:text",
			epoch, e.seq, e.at, e.gap, e.tenant, e.kind, e.key, e.event, e.facts)
	}
	if e := &c.samples; len(e.seq) > 0 {
		b.insert("sample", "seq:bigint at:bigint gap:bigint tenant:integer kind:integer key:text event:text",
			epoch, e.seq, e.at, e.gap, e.tenant, e.kind, e.key, e.event)
	}
	if len(c.pEvent) > 0 {
		b.insert("posting", "event:bigint line:integer tenant:text job:text currency:text source:text target:text "+
			"amount:text hash:bytea rest:bytea", 0,
			c.pEvent, c.pLine, c.pTenant, c.pJob, c.pCurrency, c.pFrom, c.pTo, c.pAmount, c.pHash, c.pRest)
	}
	b.WriteString(" SELECT count(*) FROM fence")
	return b.String(), b.args
}

// appending builds a statement and its arguments.
type appending struct {
	strings.Builder
	args []any
}

// arg adds an argument and returns its placeholder.
func (b *appending) arg(v any) string {
	b.args = append(b.args, v)
	return "$" + strconv.Itoa(len(b.args))
}

// insert adds rows to a table, one array per column; each column carries the type of its elements. Rows of the log
// carry their writer's epoch; 0 means none.
func (b *appending) insert(table, columns string, epoch uint64, arrays ...any) {
	var names, values, arguments []string
	for n, column := range strings.Fields(columns) {
		name, kind, _ := strings.Cut(column, ":")
		names, values = append(names, name), append(values, name)
		if name == "amount" {
			values[n] += "::numeric"
		}
		arguments = append(arguments, b.arg(arrays[n])+"::"+kind+"[]")
	}
	from := strings.Join(names, ", ")
	if epoch > 0 {
		names, values = append(names, "epoch"), append(values, b.arg(int64(epoch))+"::bigint")
	}
	b.WriteString(", add_" + table + " AS (INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") SELECT " +
		strings.Join(values, ", ") + " FROM unnest(" + strings.Join(arguments, ", ") + ") AS e (" + from +
		") WHERE EXISTS (SELECT FROM fence))")
}
