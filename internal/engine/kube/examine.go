//go:build !local

package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/price"
	"scrimp/internal/engine/kube/reason"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/engine/order"
)

// right is what this driver does to objects of one kind.
type right struct {
	group, resource string
	verbs           []string
	only            func(*pool.With) bool // nil: always
}

// rights are all the rights that the driver needs, in its namespace. It reads no cluster-wide objects.
var rights = []right{
	{"", "configmaps", []string{"get", "list", "create", "update", "delete"}, nil},
	{"", "secrets", []string{"create", "delete"}, nil},
	{"", "services", []string{"create", "delete"}, nil},
	{"", "pods", []string{"list", "watch", "delete"}, nil},
	{"", "events", []string{"list"}, nil},
	{"batch", "jobs", []string{"get", "create", "delete"}, nil},
	{"kueue.x-k8s.io", "localqueues", []string{"get"}, func(w *pool.With) bool {
		return slices.ContainsFunc(w.Pools, func(p pool.Pool) bool { return p.Queue != "" })
	}},
}

// Role returns the least Role that the engine needs, as YAML.
func Role(w *pool.With, namespace string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: scrimp, namespace: "+
		"%s}\nrules:\n",
		namespace)
	for _, r := range rights {
		if r.only == nil || r.only(w) {
			fmt.Fprintf(&b, "- {apiGroups: [%q], resources: [%s], verbs: [%s]}\n", r.group, r.resource,
				strings.Join(r.verbs, ", "))
		}
	}
	return b.String()
}

// Examine implements engine.Examiner.
func (d *Driver) Examine(ctx context.Context) []engine.Finding {
	a, err := client.Connect(&d.with, nil)
	if err != nil {
		return []engine.Finding{{Name: "credentials", Text: err.Error()}}
	}
	found := []engine.Finding{d.cluster(ctx, a)}
	if !found[0].OK {
		return found
	}
	allowed := d.allowed(ctx, a)
	found = append(found, allowed)
	if !allowed.OK {
		return append(found, d.wayBack())
	}
	there := d.namespace(ctx, a)
	if found = append(found, there); !there.OK {
		return append(found, d.wayBack())
	}
	d.prices.Expire()
	d.prices.Refresh(ctx, a)
	for n := range d.with.Pools {
		found = append(found, d.pool(ctx, a, &d.with.Pools[n]))
	}
	return append(found, d.wayBack())
}

// cluster checks that the API server answers and accepts the credentials.
func (d *Driver) cluster(ctx context.Context, a *client.Client) engine.Finding {
	f := engine.Finding{Name: "API server"}
	began := time.Now()
	err := a.Answers(ctx)
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case apierrors.IsForbidden(err): // it has answered; the rights are checked next
	case apierrors.IsUnauthorized(err):
		f.Text = d.explain(err).Error()
		return f
	case err != nil:
		f.Text = fmt.Sprintf("%s does not answer: %s: is it the right context (kubectl config get-contexts), and is the "+
			"network open?", a.Host, reason.Said(err))
		return f
	}
	f.OK, f.Text = true, fmt.Sprintf("%s answers within %v, namespace %s", a.Host, took, a.Namespace)
	return f
}

// allowed checks each right.
func (d *Driver) allowed(ctx context.Context, a *client.Client) engine.Finding {
	f := engine.Finding{Name: "rights"}
	var lacks []string
	for _, r := range rights {
		if r.only != nil && !r.only(&d.with) {
			continue
		}
		for _, verb := range r.verbs {
			review := authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authv1.ResourceAttributes{Namespace: a.Namespace, Verb: verb, Group: r.group,
					Resource: r.resource}}}
			err := a.Auth.Post().Resource("selfsubjectaccessreviews").VersionedParams(&metav1.CreateOptions{}, client.Queries).
				Body(&review).Do(ctx).Into(&review)
			if err != nil {
				f.Text = d.explain(err).Error()
				return f
			}
			if !review.Status.Allowed {
				lacks = append(lacks, verb+" "+r.resource)
			}
		}
	}
	if len(lacks) > 0 {
		f.Text = fmt.Sprintf("not allowed in namespace %s: %s. An administrator of it applies this Role, and binds it to "+
			"this user:\n%s", a.Namespace, strings.Join(lacks, ", "), Role(&d.with, a.Namespace))
		return f
	}
	f.OK, f.Text = true, "all that is needed, in namespace "+a.Namespace+" alone"
	return f
}

// namespace checks that the namespace exists, by what a user without rights on namespaces can see.
func (d *Driver) namespace(ctx context.Context, a *client.Client) engine.Finding {
	f := engine.Finding{Name: "namespace"}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "scrimp-probe"}}
	if err := a.Create(ctx, "configmaps", probe, true); err != nil && !apierrors.IsAlreadyExists(err) {
		f.Text = reason.Refusal(a, err).Error()
		return f
	}
	f.OK, f.Text = true, a.Namespace+" takes objects"
	return f
}

// pool tries how the cluster would answer a machine of each part of a pool, and leaves nothing there.
func (d *Driver) pool(ctx context.Context, a *client.Client, p *pool.Pool) engine.Finding {
	f := engine.Finding{Name: "pool " + p.Name}
	var sells []string
	sales := d.prices.Sales()
	for n := range sales {
		s := &sales[n]
		if s.Of != p {
			continue
		}
		r := &record.Record{Order: order.Order{Key: "examine", Offer: s.Offer.ID, Nodes: 1, Currency: s.Offer.Currency},
			Name: record.NameOf("examine"), UID: "00000000-0000-0000-0000-000000000000"}
		job := d.template().Job(r, s, map[string]string{})
		job.OwnerReferences = nil
		pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
		pod.Name = job.Name
		if err := a.Create(ctx, "jobs", job, true); err != nil && !apierrors.IsAlreadyExists(err) {
			f.Text = reason.Refusal(a, err).Error()
			return f
		}
		err := a.Create(ctx, "pods", pod, true)
		if err != nil && !apierrors.IsAlreadyExists(err) && !reason.NotAsked(err) {
			f.Text = reason.Refusal(a, err).Error()
			return f
		}
		price := "at an unknown price: " + cmp.Or(s.Unknown, "set rate")
		if s.Quote.Priced {
			price = fmt.Sprintf("%v %s an hour", s.Quote.Rate, s.Offer.Currency)
		}
		if s.Quote.Priced && s.Quote.Source != pool.OwnRate {
			price += " (" + s.Quote.Source + ")"
		}
		sells = append(sells, fmt.Sprintf("%s, %s", s.Offer.ID, price))
	}
	if p.Queue != "" {
		if err := reason.LocalQueue(ctx, a, p.Queue); err != nil {
			f.Text = reason.NoQueue(a.Namespace, p.Queue)
			return f
		}
	}
	if left, why := d.troubled(p.Name); left > 0 {
		f.Text = why
		return f
	}
	f.OK, f.Text = true, strings.Join(sells, "; ")+d.nodesOf(ctx, a, p, sales)
	return f
}

// nodesOf describes the current nodes of a pool, if this user may see nodes.
func (d *Driver) nodesOf(ctx context.Context, a *client.Client, p *pool.Pool, sales []pool.Sale) string {
	nodes, err := price.NodesOf(ctx, a, p)
	if err != nil {
		return "; cannot check whether nodes hold one: this user may not list nodes, which scrimp does not need"
	}
	fits := 0
	for n := range nodes {
		if slices.ContainsFunc(sales, func(s pool.Sale) bool { return s.Of == p && s.Fits(&nodes[n]) > 0 }) {
			fits++
		}
	}
	switch {
	case len(nodes) == 0:
		return "; no node has its labels now: an autoscaler must add one"
	case fits == 0:
		return fmt.Sprintf("; none of its %d nodes can hold a machine: lower cpus and memory by what daemon "+
			"sets take, or an "+
			"autoscaler must add larger ones", len(nodes))
	}
	return fmt.Sprintf("; %d of its %d nodes can hold one when empty", fits, len(nodes))
}

// wayBack checks whether pods can reach the server, as far as possible without a pod.
func (d *Driver) wayBack() engine.Finding {
	if d.server == "" {
		return engine.Finding{Name: "way back", Text: "the server listens on no address that pods could reach: scrimp " +
			"serve --listen HOST:PORT, or write its URL as agents"}
	}
	return engine.Finding{Name: "way back", OK: true, Text: "agents call " + d.server + "; each pod checks it " +
		"before it starts"}
}
