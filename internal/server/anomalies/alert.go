package anomalies

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/incident"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/outbox"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
)

const (
	// alertsMeta is the key of the list of alerts in the metadata.
	alertsMeta = "anomaly_alerts"
	// mostAlerts bounds the alerts of an installation: each look compares every incident with each.
	mostAlerts = 100
	// shownNotices is the number of reports that a list shows of an alert.
	shownNotices = 5
)

// Meta stores metadata beside the log.
type Meta interface {
	Meta(ctx context.Context, key string) (string, bool, error)
	PutMeta(ctx context.Context, key, value string) error
}

// alert is what the metadata keeps of an alert.
type alert struct {
	Name  string          `json:"name"`
	Team  string          `json:"team,omitempty"` // "": all teams
	Kinds []incident.Kind `json:"kinds,omitempty"`
	Above *money.Amount   `json:"above,omitempty"`
	By    string          `json:"by"`
	To    string          `json:"to"`
	User  string          `json:"user"`
	At    time.Time       `json:"at"` // wall time
	// Sealed is the receiver as the user wrote it, sealed by the vault: it may contain a secret.
	Sealed []byte `json:"sealed"`
}

// covers reports whether the alert reports an incident.
func (a *alert) covers(of *incident.Alert) bool {
	return (a.Team == "" || a.Team == of.Team) && (len(a.Kinds) == 0 || slices.Contains(a.Kinds, of.Kind)) &&
		(a.Above == nil || of.AtStake.Cmp(*a.Above) > 0)
}

// alerts returns the alerts in the order in which they were added.
func (d *Service) alerts(ctx context.Context) (list []alert, err error) {
	text, ok, err := d.Meta.Meta(ctx, alertsMeta)
	if err != nil || !ok {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read the alerts about anomalies: %w", err)
	}
	return list, nil
}

func (d *Service) keepAlerts(ctx context.Context, list []alert) error {
	text, err := json.Marshal(reply.List(list))
	if err != nil {
		return err
	}
	return d.Meta.PutMeta(ctx, alertsMeta, string(text))
}

// receiver returns the receiver of an alert.
func (d *Service) receiver(a *alert) (outbox.Receiver, string, error) {
	text, err := d.Vault.Unseal(alertWord+a.Name, a.Sealed)
	if err != nil {
		return outbox.Receiver{}, "", errors.New("its receiver cannot be read with the key of this data folder: remove " +
			"the alert and add it again")
	}
	r, err := outbox.ParseReceiver(string(text))
	return r, string(text), err
}

// alertWord begins the name under which the vault seals a receiver.
const alertWord = "alert "

// show returns an alert as the API shows it.
func (d *Service) showAlert(a *alert) client.AnomalyAlert {
	v := client.AnomalyAlert{Name: a.Name, Team: a.Team, By: a.By, To: a.To, Above: a.Above, User: a.User, At: a.At,
		Kinds: []string{}}
	for _, k := range a.Kinds {
		v.Kinds = append(v.Kinds, string(k))
	}
	if r, _, err := d.receiver(a); err != nil {
		v.Error = err.Error()
	} else if why, fix := d.Outbox.Refusal(r); why != "" {
		v.Error = why + ": " + fix
	}
	list, err := d.Outbox.Past.OfAlert(a.Name, shownNotices)
	if err != nil {
		d.Log.Warn("cannot read the reports of an alert", "alert", a.Name, "error", err)
	}
	v.Notices = reply.List(list)
	return v
}

// Alerts lists the alerts that concern the caller.
func (d *Service) Alerts(w http.ResponseWriter, r *http.Request) {
	list, err := d.alerts(r.Context())
	if err != nil {
		reports.Unread(w, "cannot read the alerts", err)
		return
	}
	c, all := auth.CallerOf(r), []client.AnomalyAlert{}
	for i := range list {
		if list[i].seenBy(c) {
			all = append(all, d.showAlert(&list[i]))
		}
	}
	reply.JSON(w, all)
}

// seenBy reports whether the caller may see the alert: one of a team that the caller sees, or one of all teams.
func (a *alert) seenBy(c identity.Caller) bool {
	return a.Team == "" || c.Role(a.Team) >= identity.Viewer
}

// AddAlert adds an alert. What is an incident already counts as reported.
func (d *Service) AddAlert(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.AddAnomalyAlert](w, r)
	if !ok {
		return
	}
	a, no := d.alertOf(auth.CallerOf(r), &b)
	if no != nil {
		no.Answer(w)
		return
	}
	d.alerting.Lock()
	defer d.alerting.Unlock()
	list, err := d.alerts(r.Context())
	if err != nil {
		reports.Unread(w, "cannot read the alerts", err)
		return
	}
	if at := slices.IndexFunc(list, func(old alert) bool { return d.same(&old, &a, b.To) }); at >= 0 {
		reply.JSON(w, d.showAlert(&list[at]))
		return
	}
	if len(list) >= mostAlerts {
		reply.Problem(w, http.StatusConflict, fmt.Sprintf("there are %d alerts already", mostAlerts),
			"remove one first with scrimp anomalies alert remove NAME", nil)
		return
	}
	s, err := d.find(r.Context(), everybody, "", sinceStandard)
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	h := &history{}
	h.know(&a, s)
	detail := strings.Join(slices.DeleteFunc([]string{a.By, a.To, a.Team}, func(s string) bool { return s == "" }), " ")
	if a.Sealed, err = d.Vault.Seal(alertWord+a.Name, []byte(strings.TrimSpace(b.To))); err == nil {
		err = d.keepHistory(r.Context(), a.Name, h)
	}
	if err == nil {
		err = d.keepAlerts(r.Context(), append(list, a))
	}
	if err == nil {
		err = d.Gate.ProposeWith(r, a.Name, detail)
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	reply.JSON(w, d.showAlert(&a))
}

// same reports whether two alerts differ by name, user and time only.
func (d *Service) same(old, a *alert, to string) bool {
	_, text, err := d.receiver(old)
	sameAbove := old.Above == nil && a.Above == nil ||
		old.Above != nil && a.Above != nil && old.Above.Cmp(*a.Above) == 0
	return err == nil && text == strings.TrimSpace(to) && old.Team == a.Team && sameAbove &&
		slices.Equal(old.Kinds, a.Kinds)
}

// alertOf returns the alert of a request, or what is wrong with it.
func (d *Service) alertOf(c identity.Caller, b *client.AddAnomalyAlert) (a alert, no *reply.Refusal) {
	var id [5]byte
	_, _ = rand.Read(id[:]) // rand.Read never fails
	a = alert{Name: "al-" + hex.EncodeToString(id[:]), Team: b.Team, Above: b.Above, User: c.User,
		At: time.Now().UTC().Truncate(time.Second)}
	wrong := func(field, title, fix string) (alert, *reply.Refusal) {
		return a, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: title, Fix: fix}
	}
	if a.Team != "" && (c.Role(a.Team) < identity.Viewer || d.HasTeams() && !d.HasTeam(a.Team)) {
		return a, &reply.Refusal{Status: http.StatusNotFound, Field: "team", Fix: "scrimp teams lists the teams",
			Title: fmt.Sprintf("there is no team %.60q that you may see", a.Team)}
	}
	to, err := outbox.ParseReceiver(b.To)
	if err != nil {
		return wrong("to", "to names no receiver", err.Error())
	}
	a.By, a.To = to.By, to.To
	if why, fix := d.Outbox.Refusal(to); why != "" {
		return wrong("to", why, fix)
	}
	if a.Above != nil && a.Above.Sign() < 0 {
		return wrong("above", "above is negative", "write an amount such as 50")
	}
	for _, text := range b.Kinds {
		k, known := incident.KindOf(text)
		if !known {
			return wrong("kinds", fmt.Sprintf("there is no kind %.40q", text), "the kinds are: "+kindNames())
		}
		a.Kinds = append(a.Kinds, k)
	}
	slices.Sort(a.Kinds)
	a.Kinds = slices.Compact(a.Kinds)
	return a, needs(c, a.Team)
}

// kindNames lists the kinds of incidents.
func kindNames() string {
	var names []string
	for _, k := range incident.Kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// named returns the position of the alert that the path names. at < 0: the request is answered.
func (d *Service) namedAlert(w http.ResponseWriter, r *http.Request) (list []alert, at int) {
	c, name := auth.CallerOf(r), r.PathValue("id")
	list, err := d.alerts(r.Context())
	if err != nil {
		reports.Unread(w, "cannot read the alerts", err)
		return nil, -1
	}
	at = slices.IndexFunc(list, func(a alert) bool { return a.Name == name && a.seenBy(c) })
	if at < 0 {
		reply.FieldProblem(w, http.StatusNotFound, "id", fmt.Sprintf("there is no alert %.40q", name),
			"scrimp anomalies alert list lists them", nil)
		return nil, -1
	}
	if no := needs(c, list[at].Team); no != nil {
		no.Answer(w)
		return nil, -1
	}
	return list, at
}

// RemoveAlert removes an alert, with what it has not reported yet.
func (d *Service) RemoveAlert(w http.ResponseWriter, r *http.Request) {
	d.alerting.Lock()
	defer d.alerting.Unlock()
	list, at := d.namedAlert(w, r)
	if at < 0 {
		return
	}
	name := list[at].Name
	err := d.keepAlerts(r.Context(), slices.Delete(list, at, at+1))
	if err == nil {
		d.stopReports(name)
		err = cmp.Or(d.Meta.PutMeta(r.Context(), historyMeta+name, ""), d.Outbox.Past.ForgetAlert(name),
			d.Gate.Propose(r, name))
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// TestAlert sends a marked report to the receiver of an alert once, and answers what became of it.
func (d *Service) TestAlert(w http.ResponseWriter, r *http.Request) {
	list, at := d.namedAlert(w, r)
	if at < 0 {
		return
	}
	a := &list[at]
	to, _, err := d.receiver(a)
	if err != nil {
		reply.Problem(w, http.StatusConflict, err.Error(), "scrimp anomalies alert remove "+a.Name, nil)
		return
	}
	now := d.now()
	sample := client.Anomaly{Name: "a-test", Kind: string(incident.Spend), Team: a.Team, About: cmp.Or(a.Team, "test"),
		Since: now, Found: now, Until: &now, Currency: money.USD, Jobs: []string{}, Factor: 1,
		Threshold: incident.Threshold(incident.Spend, 1), Why: "somebody tests this alert"}
	report := d.Outbox.NewAnomalyReport(outbox.AlertTested, a.Name, &sample)
	report.ID += "/" + time.Now().UTC().Format(time.RFC3339Nano)
	n := d.Outbox.TryAlert(r.Context(), to, a.User, report)
	if err := d.Gate.ProposeWith(r, a.Name, n.State); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	reply.JSON(w, n)
}
