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
	"scrimp/internal/engine/order"
)

// record is what is known of a request. It is stored in a ConfigMap, which exists before the request's Job and owns
// it, so that a restarted or another server finds the result.
type record struct {
	order.Order
	Notice time.Duration `json:"notice_ns,omitempty"`
	Image  string        `json:"image,omitempty"` // named by the job

	Asked     time.Time `json:"asked"`
	Cancelled bool      `json:"cancelled,omitempty"` // the part that had not started was cancelled
	Granted   []granted `json:"granted,omitempty"`   // in order of their start
	Closed    time.Time `json:"closed,omitzero"`     // when all machines had ended

	name    string // of its objects
	uid     types.UID
	version string // of the ConfigMap
}

// granted is one machine of a request: a pod that has started.
type granted struct {
	Index int          `json:"index"` // within its Job
	Pod   types.UID    `json:"pod"`
	Node  string       `json:"node"`
	From  time.Time    `json:"from"` // when it was scheduled
	Given bool         `json:"given,omitempty"`
	End   time.Time    `json:"end,omitzero"`
	Cause engine.Cause `json:"cause,omitempty"`
}

// keepFor is how long a record is kept after all machines have ended.
const keepFor = 2 * time.Hour

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf returns the unique name of a key's objects. The names of its pods are valid labels.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	plain := strings.Trim(notPlain.ReplaceAllString(strings.ToLower(key), "-"), "-")
	return "scrimp-" + strings.Trim(plain[:min(len(plain), 36)], "-") + "-" + hex.EncodeToString(sum[:4])
}

// labels returns the labels of all objects of a request.
func (d *Driver) labels(r *record) map[string]string {
	return map[string]string{client.LabelManaged: "scrimp", client.LabelEngine: d.name,
		client.LabelInstallation: labelValue(r.Tags["scrimp-installation"]),
		client.LabelJob:          labelValue(r.Tags["scrimp-job"])}
}

// labelValue converts a text to a valid label value.
func labelValue(s string) string {
	s = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c) {
			return c
		}
		return '-'
	}, s)
	return strings.Trim(s[:min(len(s), 63)], "-_.")
}

// keep creates the ConfigMap of a new record.
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

// tagged converts a request's tags to annotations, which may contain any text.
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
		return nil, fmt.Errorf("configmap %s is not a record of scrimp: remove its label %s, or the configmap", m.Name,
			client.LabelKind)
	}
	r.name, r.uid, r.version = m.Name, m.UID, m.ResourceVersion
	return &r, nil
}

// known returns a key's record, also one created by another server; nil if there is none.
func (d *Driver) known(ctx context.Context, a *client.Client, key string) (*record, error) {
	d.mu.Lock()
	r := d.records[key]
	d.mu.Unlock()
	if r != nil {
		return r, nil
	}
	return d.fetch(ctx, a, key)
}

// fetch reads a key's record from the cluster; nil if there is none.
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

// remember stores a record that was read or written.
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

// change changes a record durably before anybody acts on it. It may call f again on another server's newer version.
// If f changes nothing, nothing is written.
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
		case apierrors.IsNotFound(err): // somebody has removed it: only this server's copy remains
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

// load reads the records in the cluster, and deletes those that are no longer needed.
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

// take remembers a listed record unless a newer version is known, or deletes it.
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

// id returns the id of a machine.
func (d *Driver) id(r *record, index int) string {
	return fmt.Sprintf("%s-%s-%d", d.name, nameOf(r.Key), index)
}

// of parses a machine's id into its record's name and index.
func (d *Driver) of(id string) (name string, index int, ok bool) {
	rest, ok := strings.CutPrefix(id, d.name+"-")
	n := strings.LastIndexByte(rest, '-')
	if !ok || n < 0 {
		return "", 0, false
	}
	index, err := strconv.Atoi(rest[n+1:])
	return rest[:n], index, err == nil && index >= 0 && rest[n+1:] == strconv.Itoa(index)
}

// grant returns the machine of an index; nil if it has not started.
func (r *record) grant(index int) *granted {
	for n := range r.Granted {
		if r.Granted[n].Index == index {
			return &r.Granted[n]
		}
	}
	return nil
}

// whole reports whether no more machines of a request will start.
func (r *record) whole() bool { return r.Cancelled || len(r.Granted) == r.Nodes }

// over reports whether all machines of a request have ended.
func (r *record) over() bool {
	return r.whole() && !slices.ContainsFunc(r.Granted, func(g granted) bool { return g.End.IsZero() })
}

// instances returns a request's started machines in order of their start. An eviction concerns one pod, so other
// machines of its pool are not reported with it.
func (d *Driver) instances(r *record) []engine.Instance {
	list := make([]engine.Instance, len(r.Granted))
	for n := range r.Granted {
		g := &r.Granted[n]
		i := r.Instance(d.id(r, g.Index), g.From)
		i.Notice = r.Notice
		if !g.End.IsZero() {
			i.State, i.Ended, i.Cause, i.Bill = engine.Ended, g.End, g.Cause, r.Bill(g.From, g.End)
		}
		list[n] = i
	}
	return list
}
