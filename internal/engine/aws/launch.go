//go:build !local

package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/prepare"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/lib/wait"
)

// visible is how long a launch waits until EC2 lists what it has granted; after that, the caller repeats the key.
const visible = 15 * time.Second

// Launch implements engine.Driver with a fleet. Machines carry their key as a tag, and the client tokens of fleets
// follow from the key, so that nothing is rented twice, whoever repeats the request.
func (d *Driver) Launch(ctx context.Context, q engine.Request) ([]engine.Instance, error) {
	switch {
	case q.Key == "" || len(q.Key) > 200:
		return nil, fmt.Errorf("%w: a request with the key %q", engine.ErrRequest, q.Key)
	case q.Image != "":
		return nil, q.NoImage()
	}
	end, err := d.turns.Take(ctx, q.Key)
	if err != nil {
		return nil, err
	}
	defer end()
	a, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	list, err := d.launch(ctx, a, &q)
	return list, d.explain(err)
}

func (d *Driver) launch(ctx context.Context, a *account.Client, q *engine.Request) ([]engine.Instance, error) {
	list, err := d.ofKey(ctx, a, q.Key)
	if err != nil || len(list) >= q.Machines() {
		return list, err
	}
	r := d.requestOf(q.Key)
	switch {
	case r.cancelled && len(list) > 0:
		return list, &engine.PendingError{Why: "the rest was cancelled"}
	case r.cancelled && len(r.granted) == 0:
		return nil, d.surely(r, fmt.Errorf("%w: the request was cancelled", engine.ErrNotFound))
	}
	if len(r.granted) == 0 {
		if r.granted, err = d.fleet(ctx, a, q, r); err != nil {
			return nil, d.surely(r, err)
		}
	}
	list, err = d.listed(ctx, a, r)
	if err == nil && len(list) < q.Machines() {
		// A fleet grants all or none. Its other machines are listed later, or ended long ago: a new request could
		// rent them twice.
		err = &engine.PendingError{Why: fmt.Sprintf("EC2 lists %d of %d machines", len(list), q.Machines())}
	}
	return list, err
}

// surely returns err, or a temporary error if err is a refusal while machines may still appear that an earlier,
// unanswered fleet of the request was granted.
func (d *Driver) surely(r *request, err error) error {
	if err == nil || !engine.Refused(err) || r.unsure.IsZero() || d.now().Sub(r.unsure) > usual.Consistency {
		return err
	}
	return fmt.Errorf("an earlier request with this key has no answer and may have been granted: scrimp tries again (%s)",
		account.SaidBy(err))
}

// requestOf returns what this server knows about a key.
func (d *Driver) requestOf(key string) *request {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.requests[key]
	if r == nil {
		r = &request{}
		d.requests[key] = r
	}
	r.at = d.now()
	return r
}

// noFleet returns what an error of CreateFleet means for a request.
func (d *Driver) noFleet(r *request, t prepare.Template, err error) error {
	if d.unanswered(err) {
		r.unsure = d.now()
	}
	switch code := account.CodeOf(err); {
	case code == "IdempotentParameterMismatch":
		return d.mismatched(r, err)
	case strings.HasPrefix(code, "InvalidLaunchTemplate"):
		d.prepare.Forget(t)
		return fmt.Errorf("the launch template is gone (%s): the next try creates it again", account.SaidBy(err))
	case d.prepare.OwnGroupGone(code):
		return fmt.Errorf("the security group is gone (%s): the next try creates it again", account.SaidBy(err))
	}
	return account.OrRefused(d.name, &d.with, err)
}

// fleet requests machines and returns the ids of the granted ones, at least one. Each answer from EC2 uses up a
// client token. A restarted server repeats the first tokens and gets the same answers.
func (d *Driver) fleet(ctx context.Context, a *account.Client, q *engine.Request, r *request) ([]string, error) {
	s, err := d.saleOf(ctx, q)
	if err != nil {
		return nil, err
	}
	group, err := d.prepare.GroupOf(ctx, a, q, s.Zone.VPC)
	if err != nil {
		return nil, account.OrRefused(d.name, &d.with, err)
	}
	t, err := d.prepare.TemplateOf(ctx, a, q, s, group)
	if err == nil {
		err = d.prepare.Placed(ctx, a, q, s)
	}
	if err != nil {
		return nil, account.OrRefused(d.name, &d.with, err)
	}
	if s.Held != nil && s.Held.Block {
		return d.rentInBlock(ctx, a, q, r, s, t, group)
	}
	if len(r.ways) == 0 {
		r.ways = s.Ways()
	}
	in := d.prepare.FleetOf(q, r.asked, r.ways, s, t)
	out, err := a.EC2.CreateFleet(ctx, in, func(o *ec2.Options) { o.RetryMaxAttempts = 1 }) // each answer counts
	if err != nil {
		return nil, d.noFleet(r, t, err)
	}
	r.asked++
	r.mismatch, r.unsure, r.ways = time.Time{}, time.Time{}, nil
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, i.InstanceIds...)
	}
	if len(ids) > 0 {
		return d.grants(ids), nil
	}
	return nil, d.seller.NoRoom(q.Offer, d.notGranted(out))
}

// notGranted returns why a fleet has no machine. If types and zones differ, a reason about the whole account comes
// first, then missing capacity, which passes sooner than a quota.
func (d *Driver) notGranted(out *ec2.CreateFleetOutput) error {
	var said error
	weight := 0
	for _, e := range out.Errors {
		if d.prepare.OwnGroupGone(sdk.ToString(e.ErrorCode)) {
			return fmt.Errorf("the security group is gone (%s): the next try creates it again", sdk.ToString(e.ErrorMessage))
		}
		err := d.refused(sdk.ToString(e.ErrorCode), sdk.ToString(e.ErrorMessage))
		w := 1
		if r, ok := errors.AsType[*engine.RefusalError](err); ok && r.Scope == "account" {
			w = 3
		} else if errors.Is(err, engine.ErrNoCapacity) {
			w = 2
		}
		if err != nil && w > weight {
			said, weight = err, w
		}
	}
	if said != nil {
		return said
	}
	if len(out.Errors) > 0 {
		e := out.Errors[0]
		return fmt.Errorf("AWS answers %s: %s", sdk.ToString(e.ErrorCode),
			account.WithoutCipher(sdk.ToString(e.ErrorMessage)))
	}
	return fmt.Errorf("%w: AWS grants none, without a reason", engine.ErrNoCapacity)
}

// mismatched handles a token that was used with other parameters, as by a server with other settings: its machines
// are listed by their tag within a while. Only then does it use a further token.
func (d *Driver) mismatched(r *request, err error) error {
	if r.mismatch.IsZero() {
		r.mismatch = d.now()
	}
	if d.now().Sub(r.mismatch) > usual.Consistency {
		r.asked++
		r.mismatch, r.ways = time.Time{}, nil
	}
	return fmt.Errorf(
		"an earlier request with this key had other settings (%s): scrimp waits for its machines",
		account.SaidBy(err),
	)
}

// saleOf returns what a request asks for, if it is available.
func (d *Driver) saleOf(ctx context.Context, q *engine.Request) (*sale.Sale, error) {
	x, err := d.indexed(ctx)
	if err != nil {
		return nil, err
	}
	all := d.seller.Sales(x)
	n := slices.IndexFunc(all, func(s sale.Sale) bool { return s.Offer.ID == q.Offer })
	if n < 0 {
		return nil, fmt.Errorf(
			"%w: the engine has no %s: its types are in engines.yaml, and scrimp market lists what there is",
			engine.ErrNotFound,
			q.Offer,
		)
	}
	s := &all[n]
	switch {
	case s.Kind.Name == "":
		return nil, fmt.Errorf("%w: the reservation of %s has ended", engine.ErrNoCapacity, q.Offer)
	case q.MaxRate > 0 && !s.Quote.Priced:
		return nil, fmt.Errorf("%w: the price of %s is unknown", engine.ErrPrice, q.Offer)
	case q.MaxRate > 0 && s.Quote.Rate > q.MaxRate:
		return nil, fmt.Errorf("%w: %v an hour, and %v at most", engine.ErrPrice, s.Quote.Rate, q.MaxRate)
	}
	return s, nil
}

// listed returns a request's machines as EC2 lists them, in the order of granting. It waits a while for those that
// are not listed yet.
func (d *Driver) listed(ctx context.Context, a *account.Client, r *request) ([]engine.Instance, error) {
	for until := d.now().Add(d.visible); ; {
		list, err := d.describe(ctx, a, &ec2.DescribeInstancesInput{Filters: ids(r.granted...)})
		if err != nil {
			return nil, err
		}
		if len(list) >= len(r.granted) {
			return ordered(list, r.granted), nil
		}
		if len(list) == 0 && !slices.ContainsFunc(r.granted, d.granted) {
			return nil, errAllEnded(r)
		}
		if !d.now().Before(until) {
			return nil, fmt.Errorf(
				"EC2 lists %d of %d machines that it has granted: scrimp tries again",
				len(list),
				len(r.granted),
			)
		}
		if err := wait.For(ctx, 300*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// errAllEnded returns the error for a request whose machines were granted so long ago that EC2 would list them: they
// ended, and nobody polled within the hour for which EC2 lists them afterwards.
func errAllEnded(r *request) error {
	return fmt.Errorf("%w: EC2 has granted %s, and lists none of them any more: they have ended", engine.ErrNotFound,
		strings.Join(r.granted, ", "))
}

// ids returns a filter for instances by id. EC2 ignores an unknown id in a filter, and refuses one in a list of ids.
func ids(list ...string) []types.Filter {
	return []types.Filter{{Name: sdk.String("instance-id"), Values: list}}
}

// ordered sorts list in the order of ids.
func ordered(list []engine.Instance, ids []string) []engine.Instance {
	slices.SortFunc(list, func(a, b engine.Instance) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return list
}

// ofKey returns the machines of a key that this server knows or EC2 lists.
func (d *Driver) ofKey(ctx context.Context, a *account.Client, key string) ([]engine.Instance, error) {
	list, err := d.describe(ctx, a, &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{
			Name:   sdk.String("tag:" + tag.Key),
			Values: []string{key},
		}, {Name: sdk.String("tag:" + tag.Engine), Values: []string{d.name}}}})
	if err != nil {
		return nil, err
	}
	list = append(list, d.gone(list, func(i *engine.Instance) bool { return i.Key == key })...)
	r := d.requestOf(key)
	if len(r.granted) == 0 {
		for _, i := range list {
			r.granted = append(r.granted, i.ID)
		}
		slices.Sort(r.granted)
	}
	return ordered(list, r.granted), nil
}

// Cancel implements engine.Canceller.
func (d *Driver) Cancel(ctx context.Context, key string) error {
	end, err := d.turns.Take(ctx, key)
	if err != nil {
		return err
	}
	defer end()
	a, err := d.connected(ctx)
	if err != nil {
		return err
	}
	list, err := d.ofKey(ctx, a, key)
	if err != nil {
		return d.explain(err)
	}
	r := d.requestOf(key)
	r.cancelled = true
	if len(list) == 0 && slices.ContainsFunc(r.granted, d.granted) {
		return errors.New("EC2 does not list the granted machines yet: scrimp tries again")
	}
	if len(list) == 0 {
		return d.surely(r, fmt.Errorf("%w: nothing waits", engine.ErrNotFound))
	}
	return fmt.Errorf("%w: nothing waits", engine.ErrNotFound)
}
