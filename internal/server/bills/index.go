package bills

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
)

const (
	indexMeta = "bills"
	// mostBills bounds the bills that a server keeps.
	mostBills = 5_000
	// suffix is that of the files with the rows of an import: JSON lines in gzip.
	suffix = ".jsonl.gz"
)

// index lists the kept bills and the closed months.
type index struct {
	Bills  []client.Bill      `json:"bills"`
	Closed []client.BillMonth `json:"closed"`
}

// read reads the index.
func (d *Service) read(ctx context.Context) (v index, err error) {
	text, ok, err := d.Meta.Meta(ctx, indexMeta)
	if err != nil || !ok {
		return v, err
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return v, fmt.Errorf("read the list of bills: %w", err)
	}
	return v, nil
}

// write writes the index in one piece. The caller holds d.setting.
func (d *Service) write(ctx context.Context, v index) error {
	slices.SortFunc(v.Bills, func(a, b client.Bill) int {
		return cmp.Or(strings.Compare(b.Month, a.Month), strings.Compare(a.Provider, b.Provider),
			strings.Compare(a.Account, b.Account))
	})
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.Meta.PutMeta(ctx, indexMeta, string(text))
}

// closed returns the entry of a closed month.
func (v *index) closed(month string) (client.BillMonth, bool) {
	at := slices.IndexFunc(v.Closed, func(m client.BillMonth) bool { return m.Month == month })
	if at < 0 {
		return client.BillMonth{}, false
	}
	return v.Closed[at], true
}

// find returns the position of the bill of a provider, account and month.
func (v *index) find(b *client.Bill) int {
	return slices.IndexFunc(v.Bills, func(o client.Bill) bool {
		return o.Provider == b.Provider && o.Account == b.Account && o.Month == b.Month
	})
}

// folder is where the rows of the imports are kept.
func (d *Service) folder() string { return Folder(d.Dir) }

// Folder is where the rows of the imports are in a data folder.
func Folder(dir string) string { return filepath.Join(dir, "bills") }

// has reports whether the rows of an import are there.
func (d *Service) has(file string) bool {
	_, err := os.Stat(filepath.Join(d.folder(), file+suffix))
	return err == nil
}

// sweep removes files that no bill needs, such as those of an import that a crash interrupted. The caller holds
// d.setting.
func (d *Service) sweep(v *index) {
	names, err := os.ReadDir(d.folder())
	if err != nil {
		return
	}
	for _, n := range names {
		file, whole := strings.CutSuffix(n.Name(), suffix)
		if whole && !slices.ContainsFunc(v.Bills, func(b client.Bill) bool { return b.File == file }) {
			_ = os.Remove(filepath.Join(d.folder(), n.Name())) // the next import tries again
		}
	}
}

// List lists the bills, newest month first, the closed months, and the exports that the server fetches.
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
	v, err := d.read(r.Context())
	if err != nil {
		unread(w, err)
		return
	}
	for i := range v.Bills {
		_, v.Bills[i].Closed = v.closed(v.Bills[i].Month)
	}
	list, err := d.Exports(r.Context())
	if err != nil {
		unread(w, err)
		return
	}
	reply.JSON(w, client.Bills{Bills: reply.List(v.Bills), Closed: reply.List(v.Closed), Exports: reply.List(list)})
}

func unread(w http.ResponseWriter, err error) { unreadIndex(err).Answer(w) }

func unreadIndex(err error) *reply.Refusal {
	return &reply.Refusal{Status: http.StatusInternalServerError, Title: "cannot read the bills", Fix: "try again",
		Err: err}
}

// Closed reports whether a month is closed for bills.
func (d *Service) Closed(ctx context.Context, month string) (bool, error) {
	v, err := d.read(ctx)
	_, closed := v.closed(month)
	return closed, err
}

// closedProblem answers that a month is closed.
func closedProblem(w http.ResponseWriter, m client.BillMonth) { closedRefusal(m).Answer(w) }

func closedRefusal(m client.BillMonth) *reply.Refusal {
	return &reply.Refusal{Status: http.StatusConflict, Field: "month",
		Title: fmt.Sprintf("%s is closed since %s by %s, and nothing is booked for it", m.Month,
			m.At.UTC().Format("2006-01-02"), m.By),
		Fix: "an admin opens it again with scrimp bill reopen " + m.Month}
}

// SetMonth closes or reopens a month.
func (d *Service) SetMonth(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.SetBillMonth](w, r)
	if !ok {
		return
	}
	now := d.Control.Now().UTC()
	span, ok := reports.MonthOf(w, cmp.Or(b.Month, "?"), now)
	if !ok {
		return
	}
	if b.Closed && span.Until.After(now) {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "month", "this month is not over", "close it once it has ended",
			nil)
		return
	}
	d.setting.Lock()
	defer d.setting.Unlock()
	v, err := d.read(r.Context())
	if err != nil {
		unread(w, err)
		return
	}
	if _, is := v.closed(b.Month); is != b.Closed {
		v.Closed = slices.DeleteFunc(v.Closed, func(m client.BillMonth) bool { return m.Month == b.Month })
		if b.Closed {
			v.Closed = append(v.Closed, client.BillMonth{Month: b.Month, Closed: true, By: auth.CallerOf(r).User,
				At: time.Now().UTC().Truncate(time.Second)})
		}
		slices.SortFunc(v.Closed, func(a, b client.BillMonth) int { return strings.Compare(b.Month, a.Month) })
		if err := d.write(r.Context(), v); err != nil {
			reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
