// Package bills keeps the charges of providers and vendors that are not in the log: fees that belong to no machine,
// and the lines of bills.
package bills

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"scrimp/client"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
)

// Meta stores small values by key.
type Meta interface {
	PutMeta(ctx context.Context, key, value string) error
	Meta(ctx context.Context, key string) (string, bool, error)
}

// Service answers requests about bills.
type Service struct {
	Meta    Meta
	Dir     string // the data folder
	Room    disk.Room
	Gate    *auth.Gate
	Control Core
	Ledger  Ledger
	HasTeam func(name string) bool // reports whether the team exists
	Exports func(ctx context.Context) ([]client.BillExport, error)
	setting sync.Mutex   // serializes changes of fees, bills and closed months, and bookings
	coming  auth.Streams // imports in progress, by user
}

const (
	feesMeta = "fees"
	mostFees = 200
	mostName = 80
)

func (d *Service) fees(ctx context.Context) (list []client.Fee, err error) {
	text, ok, err := d.Meta.Meta(ctx, feesMeta)
	if err != nil || !ok {
		return []client.Fee{}, err
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read the fees: %w", err)
	}
	return list, nil
}

// FeesOf lists the fees of a month, given by its first moment.
func (d *Service) FeesOf(ctx context.Context, month time.Time) ([]client.Fee, error) {
	list, err := d.fees(ctx)
	return slices.DeleteFunc(list, func(f client.Fee) bool { return !reports.FeeOf(f, month) }), err
}

// Fees lists the fees.
func (d *Service) Fees(w http.ResponseWriter, r *http.Request) {
	list, err := d.fees(r.Context())
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, "cannot read the fees", "try again", err)
		return
	}
	reply.JSON(w, list)
}

// SetFee creates, changes or removes a fee.
func (d *Service) SetFee(w http.ResponseWriter, r *http.Request) {
	f, ok := reply.Body[client.Fee](w, r)
	if !ok {
		return
	}
	f.Name = strings.TrimSpace(f.Name)
	if field, title, fix := checkFee(f); field != "" {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, field, title, fix, nil)
		return
	}
	if no := d.checkSpread(f); no != nil {
		no.Answer(w)
		return
	}
	if d.HasTeam(f.Name) {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "name", "a team has this name",
			"give the fee another: a statement could not tell them apart", nil)
		return
	}
	d.setting.Lock()
	defer d.setting.Unlock()
	list, err := d.fees(r.Context())
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, "cannot read the fees", "try again", err)
		return
	}
	switch m, closed, err := d.changesClosed(r.Context(), f); {
	case err != nil:
		unread(w, err)
		return
	case closed:
		reply.FieldProblem(w, http.StatusConflict, "since", m.Month+" is closed, and the fee would change its statements",
			"give a later first month, or open the month again with scrimp bill reopen "+m.Month, nil)
		return
	}
	list, found := from(list, f)
	if f.Amount.IsZero() && !found {
		reply.FieldProblem(w, http.StatusNotFound, "name", "there is no such fee", "scrimp chargeback fees lists them", nil)
		return
	}
	if len(list) > mostFees {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "name", "there are 200 fees", "remove one first", nil)
		return
	}
	slices.SortFunc(list, func(a, b client.Fee) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Since, b.Since))
	})
	text, err := json.Marshal(list)
	if err == nil {
		err = d.Meta.PutMeta(r.Context(), feesMeta, string(text))
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// from applies the fee f from its first month on. Earlier months keep the previous amount, so that their statements
// stay valid. found reports whether the fee existed in that month or later.
func from(list []client.Fee, f client.Fee) (changed []client.Fee, found bool) {
	for _, o := range list {
		switch {
		case o.Name != f.Name || o.Until != "" && o.Until < f.Since: // another fee, or one that ended earlier
			changed = append(changed, o)
		case o.Since < f.Since:
			o.Until, found = monthBefore(f.Since), true
			changed = append(changed, o)
		default:
			found = true
		}
	}
	if !f.Amount.IsZero() {
		changed = append(changed, f)
	}
	return changed, found
}

func monthBefore(month string) string {
	t, err := time.Parse("2006-01", month)
	if err != nil {
		return month // checkFee refuses it
	}
	return t.AddDate(0, -1, 0).Format("2006-01")
}

// changesClosed returns a closed month that the fee would change.
func (d *Service) changesClosed(ctx context.Context, f client.Fee) (m client.BillMonth, is bool, err error) {
	v, err := d.read(ctx)
	for _, m := range v.Closed {
		if m.Month >= f.Since {
			return m, true, err
		}
	}
	return m, false, err
}

// checkSpread returns what is wrong with the rule of a fee. Shares name teams that exist: a typo would misdirect the
// money.
func (d *Service) checkSpread(f client.Fee) *reply.Refusal {
	rule, err := reports.SpreadOf(f)
	if err != nil {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "spread",
			Title: "this is not a rule for spreading a fee", Err: err,
			Fix: "write proportional, even, or fixed with a share TEAM=WEIGHT for each team"}
	}
	if rule == nil {
		return nil
	}
	for _, s := range rule.Shares {
		if !d.HasTeam(s.Team) {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "shares",
				Title: fmt.Sprintf("there is no team %.60s", s.Team), Fix: "scrimp teams lists the teams"}
		}
	}
	return nil
}

// checkFee returns what is wrong with a fee.
func checkFee(f client.Fee) (field, title, fix string) {
	first, _ := utf8.DecodeRuneInString(f.Name)
	switch {
	case len(f.Name) > mostName || !unicode.IsLetter(first) || strings.ContainsFunc(f.Name, unicode.IsControl):
		return "name", "this is not a valid name of a fee", "write up to 80 letters, the first a letter"
	case f.Amount.Sign() < 0:
		return "amount", "the amount is below zero", "write what a month costs"
	case !f.Amount.IsZero() && !f.Currency.Valid():
		return "currency", "this is not a currency", "write its code of three letters, such as USD"
	}
	for field, text := range map[string]string{"since": f.Since, "until": f.Until} {
		if at, err := time.Parse("2006-01", text); text != "" && (err != nil || at.Year() < 1970) {
			return field, "this is no month", "write a month such as 2026-10"
		}
	}
	if f.Until != "" && f.Until < f.Since {
		return "until", "the last month is before the first", "write a later month, or leave it out"
	}
	return "", "", ""
}
