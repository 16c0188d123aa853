//go:build !local

package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// record is what is known of a request. It lies in a ConfigMap, which is there before the Job of the request and owns
// it, so that a server which dies in between, or another one, finds what came of it.
type record struct {
	Key      string            `json:"key"`
	Offer    market.OfferID    `json:"offer"`
	Nodes    int               `json:"nodes"`
	Rate     money.Rate        `json:"rate,omitempty"`
	Priced   bool              `json:"priced,omitempty"`
	Currency money.Currency    `json:"currency"`
	Notice   time.Duration     `json:"notice_ns,omitempty"`
	Image    string            `json:"image,omitempty"` // that the job named
	Tags     map[string]string `json:"tags,omitempty"`

	Asked     time.Time `json:"asked"`
	Cancelled bool      `json:"cancelled,omitempty"` // what had not begun was given up
	Granted   []granted `json:"granted,omitempty"`   // in the order in which they began
	Closed    time.Time `json:"closed,omitzero"`     // when all of it had ended

	name    string // of its objects
	uid     types.UID
	version string // of the ConfigMap
}

// granted is one machine of a request: a pod that has begun.
type granted struct {
	Index int          `json:"index"` // of its Job
	Pod   types.UID    `json:"pod"`
	Node  string       `json:"node"`
	From  time.Time    `json:"from"` // when it was scheduled
	Given bool         `json:"given,omitempty"`
	End   time.Time    `json:"end,omitzero"`
	Cause engine.Cause `json:"cause,omitempty"`
}

// keepFor is how long a record is kept after all of it has ended.
const keepFor = 2 * time.Hour

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf is the name of a key's objects: no other key has it, and the name of a pod of it is a label too.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	plain := strings.Trim(notPlain.ReplaceAllString(strings.ToLower(key), "-"), "-")
	return "scrimp-" + strings.Trim(plain[:min(len(plain), 36)], "-") + "-" + hex.EncodeToString(sum[:4])
}

// labels are those of all objects of a request.
func (d *Driver) labels(r *record) map[string]string {
	return map[string]string{client.LabelManaged: "scrimp", client.LabelEngine: d.name,
		client.LabelInstallation: labelValue(r.Tags["scrimp-installation"]),
		client.LabelJob:          labelValue(r.Tags["scrimp-job"])}
}

// labelValue is text as a label may have it.
func labelValue(s string) string {
	s = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c) {
			return c
		}
		return '-'
	}, s)
	return strings.Trim(s[:min(len(s), 63)], "-_.")
}

// keep makes the ConfigMap of a record that has none.
func (d *Driver) keep(ctx context.Context, a *client.Client, r *record) error {
	m, err := r.configMap(d.labels(r))
	if err != nil {
		return err
	}
	if err := a.Create(ctx, "configmaps", m, false); err != nil {
		return err
	}
	r.name, r.uid, r.version = m.Name, m.UID, m.ResourceVersion
	return nil
}

func (r *record) configMap(labels map[string]string) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	labels[client.LabelKind] = client.KindRecord
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: nameOf(r.Key), Labels: labels,
		Annotations:     tagged(r.Tags),
		ResourceVersion: r.version}, Data: map[string]string{client.DataKey: string(text)}}, nil
}

// tagged are a request's tags as annotations, which hold any text.
func tagged(tags map[string]string) map[string]string {
	all := map[string]string{}
	for name, v := range tags {
		all[client.Domain+"tag-"+name] = v
	}
	return all
}

func recordOf(m *corev1.ConfigMap) (*record, error) {
	var r record
	if err := json.Unmarshal([]byte(m.Data[client.DataKey]), &r); err != nil || r.Key == "" || nameOf(r.Key) != m.Name {
		return nil, fmt.Errorf("configmap %s is no record of scrimp: remove its label %s, or the configmap", m.Name,
			client.LabelKind)
	}
	r.name, r.uid, r.version = m.Name, m.UID, m.ResourceVersion
	return &r, nil
}

// known is a key's record, also of one that another server has made; nil: there is none.
func (d *Driver) known(ctx context.Context, a *client.Client, key string) (*record, error) {
	d.mu.Lock()
	r := d.records[key]
	d.mu.Unlock()
	if r != nil {
		return r, nil
	}
	return d.fetch(ctx, a, key)
}

// fetch reads a key's record anew; nil: there is none.
func (d *Driver) fetch(ctx context.Context, a *client.Client, key string) (*record, error) {
	var m corev1.ConfigMap
	err := a.Get(ctx, "configmaps", nameOf(key), &m)
	if apierrors.IsNotFound(err) || err == nil && m.DeletionTimestamp != nil {
		d.forget(key)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := recordOf(&m)
	if err != nil {
		return nil, err
	}
	d.remember(r)
	return r, nil
}

// remember keeps a record that was read or written.
func (d *Driver) remember(r *record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records[r.Key] = r
}

func (d *Driver) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.records, key)
	delete(d.done, key)
	delete(d.looked, key)
}

// change changes a record for good before anybody acts on it. f may be called again, on what another server has
// made of it meanwhile; where it changes nothing nothing is written.
func (d *Driver) change(ctx context.Context, a *client.Client, key string, f func(*record)) (*record, error) {
	w := d.writer(key)
	w.Lock()
	defer w.Unlock()
	r, err := d.known(ctx, a, key)
	for tries := 0; ; tries++ {
		if err != nil || r == nil {
			return r, err
		}
		c := r.copied()
		f(c)
		if reflect.DeepEqual(c, r) {
			return r, nil
		}
		m, err2 := c.configMap(d.labels(c))
		if err2 != nil {
			return nil, err2
		}
		err = a.Update(ctx, "configmaps", m.Name, m)
		switch {
		case err == nil:
			c.version = m.ResourceVersion
			d.remember(c)
			return c, nil
		case apierrors.IsNotFound(err): // somebody has removed it: what is known here is all that there is
			c.version = ""
			if err := d.keep(ctx, a, c); err != nil {
				return nil, err
			}
			d.remember(c)
			return c, nil
		case !apierrors.IsConflict(err) || tries > 4:
			return nil, err
		}
		r, err = d.fetch(ctx, a, key)
	}
}

func (r *record) copied() *record {
	c := *r
	c.Granted = slices.Clone(r.Granted)
	c.Tags = maps.Clone(r.Tags)
	return &c
}

// load reads the records that lie in the cluster, and removes those that nobody asks for any more.
func (d *Driver) load(ctx context.Context, a *client.Client) error {
	selector := client.LabelKind + "=" + client.KindRecord + "," + client.LabelEngine + "=" + d.name
	opts := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	seen := map[string]bool{}
	begun := time.Now()
	for {
		var list corev1.ConfigMapList
		if err := a.List(ctx, "configmaps", &opts, &list); err != nil {
			return err
		}
		for n := range list.Items {
			r, err := recordOf(&list.Items[n])
			if err != nil {
				d.log.Warn("passed over", "error", err)
				continue
			}
			seen[r.Key] = true
			d.take(ctx, a, r)
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, r := range d.records { // removed by somebody, or by another server
		if !seen[key] && r.Asked.Before(begun.Add(-time.Minute)) && !r.Closed.IsZero() {
			delete(d.records, key)
		}
	}
	d.loaded = time.Now()
	return nil
}

// take remembers a record that was listed, unless a newer one is known, or removes it.
func (d *Driver) take(ctx context.Context, a *client.Client, r *record) {
	if !r.Closed.IsZero() && time.Since(r.Closed) > keepFor {
		if err := a.Drop(ctx, "configmaps", r.name, &metav1.Preconditions{UID: &r.uid}); err != nil {
			d.log.Warn("an old record stays", "record", r.name, "error", err)
		}
		d.forget(r.Key)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.records[r.Key]; now == nil || mirror.Newer(r.version, now.version) {
		d.records[r.Key] = r
	}
}

// id is the name of a machine.
func (d *Driver) id(r *record, index int) string {
	return fmt.Sprintf("%s-%s-%d", d.name, nameOf(r.Key), index)
}

// of returns the record's name and the index of a machine.
func (d *Driver) of(id string) (name string, index int, ok bool) {
	rest, ok := strings.CutPrefix(id, d.name+"-")
	n := strings.LastIndexByte(rest, '-')
	if !ok || n < 0 {
		return "", 0, false
	}
	index, err := strconv.Atoi(rest[n+1:])
	return rest[:n], index, err == nil && index >= 0 && rest[n+1:] == strconv.Itoa(index)
}

// grant is the machine of an index; nil: it has not begun.
func (r *record) grant(index int) *granted {
	for n := range r.Granted {
		if r.Granted[n].Index == index {
			return &r.Granted[n]
		}
	}
	return nil
}

// whole reports whether nothing more of a request begins.
func (r *record) whole() bool { return r.Cancelled || len(r.Granted) == r.Nodes }

// over reports whether all of a request has ended.
func (r *record) over() bool {
	return r.whole() && !slices.ContainsFunc(r.Granted, func(g granted) bool { return g.End.IsZero() })
}

// instances are a request's machines that have begun, in the order in which they did. Of an eviction the pod itself is
// told: the others of its pool are not taken with it.
func (d *Driver) instances(r *record) []engine.Instance {
	list := make([]engine.Instance, len(r.Granted))
	for n := range r.Granted {
		g := &r.Granted[n]
		i := engine.Instance{ID: d.id(r, g.Index), Key: r.Key, Offer: r.Offer, State: engine.Running, Launched: g.From,
			Rate: r.Rate, Notice: r.Notice, Tags: maps.Clone(r.Tags)}
		if !g.End.IsZero() {
			i.State, i.Ended, i.Cause, i.Bill = engine.Ended, g.End, g.Cause, r.bill(g)
		}
		list[n] = i
	}
	return list
}

// bill is what a machine that has ended costs: its seconds, at the rate that its request had.
func (r *record) bill(g *granted) []engine.Line {
	if !r.Priced {
		return nil
	}
	return []engine.Line{{From: g.From, To: g.End, Amount: r.Rate.Until(g.End.Sub(g.From)), Currency: r.Currency}}
}
