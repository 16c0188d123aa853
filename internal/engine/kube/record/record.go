//go:build !local

// Package record keeps the records of requests in the cluster, as ConfigMaps, and remembers those that were read.
package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/engine/order"
)

// Record is what is known of a request. It is stored in a ConfigMap, which exists before the request's Job and owns
// it, so that a restarted or another server finds the result.
type Record struct {
	order.Order
	Notice time.Duration `json:"notice_ns,omitempty"`
	Image  string        `json:"image,omitempty"` // named by the job

	Asked     time.Time `json:"asked"`
	Cancelled bool      `json:"cancelled,omitempty"` // the part that had not started was cancelled
	Granted   []Granted `json:"granted,omitempty"`   // in order of their start
	Closed    time.Time `json:"closed,omitzero"`     // when all machines had ended

	// The fields below are those of the ConfigMap itself.

	Name    string    `json:"-"` // of all objects of the request
	UID     types.UID `json:"-"`
	Version string    `json:"-"`
}

// Granted is one machine of a request: a pod that has started.
type Granted struct {
	Index int          `json:"index"` // within its Job
	Pod   types.UID    `json:"pod"`
	Node  string       `json:"node"`
	From  time.Time    `json:"from"` // when it was scheduled
	Given bool         `json:"given,omitempty"`
	End   time.Time    `json:"end,omitzero"`
	Cause engine.Cause `json:"cause,omitempty"`
}

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// NameOf returns the unique name of a key's objects. The names of its pods are valid labels.
func NameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	plain := strings.Trim(notPlain.ReplaceAllString(strings.ToLower(key), "-"), "-")
	return "scrimp-" + strings.Trim(plain[:min(len(plain), 36)], "-") + "-" + hex.EncodeToString(sum[:4])
}

// labels returns the labels of all objects of a request.
func (r *Record) labels(engine string) map[string]string {
	return map[string]string{client.LabelManaged: "scrimp", client.LabelEngine: engine,
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

func (r *Record) configMap(labels map[string]string) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	labels[client.LabelKind] = client.KindRecord
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: NameOf(r.Key), Labels: labels,
		Annotations:     tagged(r.Tags),
		ResourceVersion: r.Version}, Data: map[string]string{client.DataKey: string(text)}}, nil
}

// tagged converts a request's tags to annotations, which may contain any text.
func tagged(tags map[string]string) map[string]string {
	all := map[string]string{}
	for name, v := range tags {
		all[client.Domain+"tag-"+name] = v
	}
	return all
}

// Of returns the record in a ConfigMap.
func Of(m *corev1.ConfigMap) (*Record, error) {
	var r Record
	if err := json.Unmarshal([]byte(m.Data[client.DataKey]), &r); err != nil || r.Key == "" || NameOf(r.Key) != m.Name {
		return nil, fmt.Errorf("configmap %s is not a record of scrimp: remove its label %s, or the configmap", m.Name,
			client.LabelKind)
	}
	r.Name, r.UID, r.Version = m.Name, m.UID, m.ResourceVersion
	return &r, nil
}

// Copied returns a copy that shares nothing that changes.
func (r *Record) Copied() *Record {
	c := *r
	c.Granted = slices.Clone(r.Granted)
	c.Tags = maps.Clone(r.Tags)
	return &c
}

// id returns the id of a machine.
func (r *Record) id(engine string, index int) string {
	return fmt.Sprintf("%s-%s-%d", engine, NameOf(r.Key), index)
}

// Parse parses a machine's id into its record's name and index.
func Parse(engine, id string) (name string, index int, ok bool) {
	rest, ok := strings.CutPrefix(id, engine+"-")
	n := strings.LastIndexByte(rest, '-')
	if !ok || n < 0 {
		return "", 0, false
	}
	index, err := strconv.Atoi(rest[n+1:])
	return rest[:n], index, err == nil && index >= 0 && rest[n+1:] == strconv.Itoa(index)
}

// Grant returns the machine of an index; nil if it has not started.
func (r *Record) Grant(index int) *Granted {
	for n := range r.Granted {
		if r.Granted[n].Index == index {
			return &r.Granted[n]
		}
	}
	return nil
}

// Ungranted reports whether there is a record, and none of its machines is granted yet.
func (r *Record) Ungranted() bool { return r != nil && len(r.Granted) == 0 }

// Whole reports whether no more machines of a request will start.
func (r *Record) Whole() bool { return r.Cancelled || len(r.Granted) == r.Nodes }

// Over reports whether all machines of a request have ended.
func (r *Record) Over() bool {
	return r.Whole() && !slices.ContainsFunc(r.Granted, func(g Granted) bool { return g.End.IsZero() })
}

// Instances returns a request's started machines in order of their start. An eviction concerns one pod, so other
// machines of its pool are not reported with it.
func (r *Record) Instances(name string) []engine.Instance {
	list := make([]engine.Instance, len(r.Granted))
	for n := range r.Granted {
		g := &r.Granted[n]
		i := r.Instance(r.id(name, g.Index), g.From)
		i.Notice = r.Notice
		if !g.End.IsZero() {
			i.State, i.Ended, i.Cause, i.Bill = engine.Ended, g.End, g.Cause, r.Bill(g.From, g.End)
		}
		list[n] = i
	}
	return list
}

// Owns reports whether an object is the record's and is not being deleted.
func (r *Record) Owns(o *metav1.ObjectMeta) bool {
	for _, by := range o.OwnerReferences {
		if by.UID == r.UID {
			return o.DeletionTimestamp == nil
		}
	}
	return false
}

// Owned returns the metadata of an object that is deleted with its record.
func (r *Record) Owned(engine string) metav1.ObjectMeta {
	labels := r.labels(engine)
	labels[client.LabelRecord] = string(r.UID)
	return metav1.ObjectMeta{Name: r.Name, Labels: labels, Annotations: tagged(r.Tags),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: r.Name, UID: r.UID}}}
}

// together is within which time machines of one request count as started together.
const together = 5 * time.Second

// Begins notes a started machine of a request.
func (r *Record) Begins(p *mirror.Pod) {
	from := p.Scheduled.UTC()
	if len(r.Granted) > 0 { // scheduled one after the other, as one request
		if first := r.Granted[0].From; from.Sub(first).Abs() <= together {
			from = first
		}
	}
	r.Granted = append(r.Granted, Granted{Index: p.Index, Pod: p.UID, Node: p.Node, From: from, Given: r.Cancelled})
}

// EndsAt notes the end at a time, and its cause.
func (g *Granted) EndsAt(p *mirror.Pod, at time.Time) {
	if !p.Ended.IsZero() {
		at = p.Ended
	} else if !p.Deleting.IsZero() && p.Deleting.Before(at) {
		at = p.Deleting
	}
	g.End = at.UTC().Truncate(time.Second)
	if g.End.Before(g.From) {
		g.End = g.From
	}
	switch {
	case p.Disrupted != "": // even if its agent reported the end and it was terminated
		g.Cause = engine.Interrupted
	case g.Given:
		g.Cause = engine.Terminated
	case p.Ended.IsZero(), Taken[p.Reason], !p.Deleting.IsZero():
		g.Cause = engine.Interrupted
	default:
		g.Cause = engine.Stopped
	}
}

// Taken are the reasons of pods ended by their node, in versions that do not mark them as disrupted.
var Taken = map[string]bool{"Evicted": true, "Preempting": true, "NodeLost": true, "NodeShutdown": true,
	"Terminated": true,
	"Shutdown":   true, "NodeAffinity": true}
