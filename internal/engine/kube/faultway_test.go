//go:build !local

package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/lib/wait"
)

// faulty is a transport that loses requests, loses answers to completed requests, answers with errors, is slow, and
// cuts watches.
type faulty struct {
	mu     sync.Mutex
	rng    *rand.Rand
	hurts  float64 // probability of a fault per request
	faults int
}

func (f *faulty) wrap(rt http.RoundTripper) http.RoundTripper { return &faultyWay{f, rt} }

// draw decides whether a request fails, in which of n ways, and with what delay.
func (f *faulty) draw(n int) (kind int, late time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind, late, ok = f.rng.IntN(n), time.Duration(f.rng.IntN(400))*time.Millisecond, f.rng.Float64() < f.hurts
	if ok {
		f.faults++
	}
	return kind, late, ok
}

type faultyWay struct {
	*faulty
	rt http.RoundTripper
}

var errFault = errors.New("connection reset by a test")

func (f *faultyWay) RoundTrip(q *http.Request) (*http.Response, error) {
	watches := q.URL.Query().Get("watch") != ""
	kind, late, hurt := f.draw(8)
	if watches { // ends soon, most times
		if hurt && kind < 2 {
			return nil, errFault
		}
		a, err := f.rt.RoundTrip(q)
		if err == nil && f.faultsNow() {
			body := a.Body
			a.Body = &cutBody{ReadCloser: body, cut: time.AfterFunc(10*late, func() { _ = body.Close() })}
		}
		return a, err
	}
	if !hurt {
		return f.rt.RoundTrip(q)
	}
	switch kind {
	case 0, 1:
		return nil, errFault
	case 2: // a definite refusal, with or without Retry-After
		code := []int{429, 500, 503}[int(late)%3]
		return says(q, code, map[bool]string{true: "0", false: ""}[late%2 == 0]), nil
	case 3:
		_ = wait.For(q.Context(), late)
		return f.rt.RoundTrip(q)
	}
	a, err := f.rt.RoundTrip(q) // it is done
	if err != nil {
		return a, err
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	switch kind {
	case 4:
		return says(q, http.StatusGatewayTimeout, ""), nil
	case 5:
		return says(q, http.StatusInternalServerError, ""), nil
	}
	_ = wait.For(q.Context(), late)
	return nil, errFault
}

func (f *faulty) faultsNow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hurts > 0
}

type cutBody struct {
	io.ReadCloser
	cut *time.Timer
}

func (c *cutBody) Close() error { c.cut.Stop(); return c.ReadCloser.Close() }

// says returns an answer in the form of the API server or of a proxy before it.
func says(q *http.Request, code int, after string) *http.Response {
	reason := map[int]metav1.StatusReason{429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
		503: metav1.StatusReasonServiceUnavailable, 504: metav1.StatusReasonTimeout}[code]
	a := &http.Response{StatusCode: code, Status: fmt.Sprint(code), Proto: "HTTP/2.0", ProtoMajor: 2, Request: q,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a test","reason":%q,"code":%d}`, reason, code)))}
	if after != "" {
		a.Header.Set("Retry-After", after)
	}
	return a
}

// ran holds the pods that ran, by name of their request and index, as an undisturbed administrator sees them.
type ran struct {
	mu   sync.Mutex
	pods map[string]map[int]map[types.UID]bool
	up   map[types.UID]string // currently running pods, by name
}

func (r *ran) of(name string) map[int]map[types.UID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[int]map[types.UID]bool{}
	for n, ids := range r.pods[name] {
		all[n] = maps.Clone(ids)
	}
	return all
}

// running returns the names of a request's running pods.
func (r *ran) running(name string) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pod := range r.up {
		if strings.HasPrefix(pod, name+"-") {
			list = append(list, pod)
		}
	}
	slices.Sort(list)
	return list
}

func (r *ran) note(o any, gone bool) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	p, job := mirror.PodOf(pod), pod.Labels["job-name"]
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.up, p.UID)
	if !p.Running || p.Scheduled.IsZero() {
		return nil
	}
	if !gone && p.Ended.IsZero() && p.Deleting.IsZero() {
		r.up[p.UID] = p.Name
	}
	if r.pods[job] == nil {
		r.pods[job] = map[int]map[types.UID]bool{}
	}
	if r.pods[job][p.Index] == nil {
		r.pods[job][p.Index] = map[types.UID]bool{}
	}
	r.pods[job][p.Index][p.UID] = true
	return nil
}

func (r *ran) Add(o any) error    { return r.note(o, false) }
func (r *ran) Update(o any) error { return r.note(o, false) }
func (r *ran) Delete(o any) error { return r.note(o, true) }
func (r *ran) Resync() error      { return nil }
func (r *ran) Replace(list []any, _ string) error {
	for _, o := range list {
		_ = r.note(o, false)
	}
	return nil
}

// left returns the engine's objects other than records.
func (h *hurt) left(ctx context.Context) (string, error) {
	var all []string
	opts := &metav1.ListOptions{LabelSelector: client.LabelEngine + "=" + h.name}
	for _, resource := range []string{"pods", "jobs", "secrets", "services"} {
		var list metav1.PartialObjectMetadataList
		text, err := h.admin.In(h.admin.ClientOf(resource).Get(), resource).VersionedParams(opts, client.Queries).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(ctx)
		if err := cmp.Or(err, json.Unmarshal(text, &list)); err != nil {
			return "", err
		}
		for n := range list.Items {
			all = append(all, resource+"/"+list.Items[n].Name)
		}
	}
	return strings.Join(all, " "), nil
}
