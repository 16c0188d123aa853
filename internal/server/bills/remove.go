package bills

import (
	"fmt"
	"net/http"
	"strings"

	"scrimp/client"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/limits"
)

// mostActDetail bounds the detail of a removal in the audit trail, in bytes.
const mostActDetail = 1000

// Remove removes a kept bill, or says what a removal would remove. The ledger keeps what was booked: the next booking
// of the month compares it with the bills that are left, and so reverses the corrections of the removed one.
func (d *Service) Remove(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.RemoveBill](w, r)
	if !ok {
		return
	}
	d.setting.Lock()
	defer d.setting.Unlock()
	v, err := d.read(r.Context())
	if err != nil {
		unread(w, err)
		return
	}
	at := v.find(&client.Bill{Provider: b.Provider, Account: b.Account, Month: b.Month})
	if at < 0 {
		reply.Problem(w, http.StatusNotFound,
			fmt.Sprintf("there is no bill of %.162s in %.20s", nameOf(b.Provider, b.Account), b.Month),
			"scrimp bill list shows provider, account and month of each", nil)
		return
	}
	if m, closed := v.closed(b.Month); closed {
		closedProblem(w, m)
		return
	}
	gone := v.Bills[at]
	auth.CallOf(r).Act.Object, auth.CallOf(r).Act.Detail = b.Month, limits.Cut(removal(&gone, b.DryRun), mostActDetail)
	if b.DryRun {
		reply.JSON(w, client.RemovedBill{Bill: gone})
		return
	}
	v.Bills = append(v.Bills[:at], v.Bills[at+1:]...)
	if err := d.write(r.Context(), v); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the bill was not removed", "try again", err)
		return
	}
	d.sweep(&v)
	reply.JSON(w, client.RemovedBill{Bill: gone, Removed: true})
}

// removal says in the audit trail which bill was removed, with its totals and the digest of its lines.
func removal(b *client.Bill, dry bool) string {
	var totals []string
	for _, t := range b.Totals {
		totals = append(totals, t.Amount+" "+string(t.Currency))
	}
	text := fmt.Sprintf("remove the bill of %s: %s, %.16s", nameOf(b.Provider, b.Account), strings.Join(totals, ", "),
		b.Digest)
	if dry {
		text += " (dry run)"
	}
	return text
}
