package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/order"
	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/sale"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/size"
)

// Examine implements engine.Examiner.
func (d *Driver) Examine(ctx context.Context) []engine.Finding {
	found := []engine.Finding{d.slurm.Ready(ctx)}
	if !found[0].OK {
		return found
	}
	found = append(found, d.controllerAnswers(ctx))
	if !found[1].OK {
		return append(found, d.sharedFolder())
	}
	sales, c, err := d.sold(ctx, 0)
	if err != nil {
		return append(found, engine.Finding{Name: "partitions", Text: err.Error()}, d.sharedFolder())
	}
	found = append(found, d.partitionsAre(sales, c)...)
	for n := range sales {
		found = append(found, d.accepted(ctx, &sales[n]))
	}
	return append(found, d.sharedFolder(), d.clockAgrees(), d.wayBack(sales))
}

// controllerAnswers checks that the controller answers and accepts the credentials.
func (d *Driver) controllerAnswers(ctx context.Context) engine.Finding {
	f := engine.Finding{Name: "controller"}
	began := time.Now()
	_, err := d.look(ctx, began)
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err != nil:
		f.Name, f.Text = d.slurm.Advice(ctx, err)
	case took > 3*time.Second:
		f.OK, f.Text = true, fmt.Sprintf("it answers, slowly (%v): a longer poll in engines.yaml asks it "+
			"less often", took)
	default:
		f.OK, f.Text = true, fmt.Sprintf("it answers within %v", took)
	}
	return f
}

// partitionsAre checks that each partition exists and is up.
func (d *Driver) partitionsAre(sales []sale.Sale, c *scheduler.Cluster) (found []engine.Finding) {
	for n := range d.with.Partitions {
		p := &d.with.Partitions[n]
		f := engine.Finding{Name: "partition " + p.Name, Text: "no node of it has what engines.yaml requests " +
			"for: sinfo -N -p " + p.Name +
			" -o '%N %c %m %G %f' shows them"}
		if _, known := c.Partitions[p.Name]; !known {
			f.Text = "the cluster has no such partition: sinfo -s lists them; correct the name in engines.yaml"
		}
		var sells []string
		for i := range sales {
			s := &sales[i]
			if s.Of != p {
				continue
			}
			if s.Why != "" {
				f.Text = s.Why
				continue
			}
			f.OK = true
			price := "at an unknown price: set rate"
			if s.Quote.Priced {
				price = fmt.Sprintf("%v %s an hour", s.Quote.Rate, s.Offer.Currency)
			}
			sells = append(sells, fmt.Sprintf("%s, %s", s.Offer.ID, price))
		}
		if f.OK {
			f.Text = strings.Join(sells, "; ")
		}
		found = append(found, f)
	}
	return found
}

// accepted tries how Slurm would answer, and leaves nothing in its queue.
func (d *Driver) accepted(ctx context.Context, s *sale.Sale) engine.Finding {
	f := engine.Finding{Name: "account for " + s.Of.Name + " " + s.Offer.Machine}
	r := &record.Record{Order: order.Order{Key: "examine", Offer: s.Offer.ID, Nodes: 1, Currency: s.Offer.Currency},
		Name: scheduler.TrialName}
	if err := d.slurm.Try(ctx, s.Order(r.Name, r.Comment(), r.Nodes)); err != nil {
		f.Text = err.Error()
		return f
	}
	f.OK, f.Text = true, "Slurm would take a job"
	return f
}

// least is the space that the shared folder needs for the agent's program and the output of allocations.
const least = 500 * size.MB

func (d *Driver) sharedFolder() engine.Finding {
	f := engine.Finding{Name: "shared folder"}
	probe, err := os.CreateTemp(d.store.Dir, ".probe-*")
	if err == nil {
		_, err = probe.WriteString("scrimp")
		err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
	}
	var st syscall.Statfs_t
	if err == nil {
		err = syscall.Statfs(d.store.Dir, &st)
	}
	switch room := size.Bytes(st.Bavail) * size.Bytes(st.Bsize); {
	case err != nil:
		f.Text = err.Error() + ": make it writable for this user, or set shared in engines.yaml to a folder " +
			"that all nodes see"
	case room < least:
		f.Text = fmt.Sprintf("%s has %v left, and %v are needed: make room there", d.store.Dir, room, least)
	default:
		f.OK, f.Text = true, fmt.Sprintf("%s is writable, with %v left; all nodes must see it by that path, "+
			"which the first job shows",
			d.store.Dir, room)
	}
	return f
}

// clockAgrees compares the controller's clock with this machine's by the newest job, which cannot start before it was
// submitted.
func (d *Driver) clockAgrees() engine.Finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	var newest *record.Record
	for _, r := range d.records {
		if !r.Start.IsZero() && (newest == nil || r.Submitted.After(newest.Submitted)) {
			newest = r
		}
	}
	f := engine.Finding{Name: "clock", OK: true, Text: "unknown until a job has run; munge accepts " +
		"at most 5 minutes"}
	if newest == nil {
		return f
	}
	f.Text = "the controller's clock is not behind this machine's"
	if off := newest.Submitted.Sub(newest.Start); off > 3*time.Second {
		f.OK = false
		f.Text = fmt.Sprintf("the controller's clock is %v behind this machine's: bills and deadlines are off by "+
			"that: timedatectl "+
			"set-ntp true on both", off.Round(time.Second))
	}
	return f
}

// wayBack checks whether nodes can reach the server, as far as possible without a job.
func (d *Driver) wayBack(sales []sale.Sale) engine.Finding {
	f := engine.Finding{Name: "way back", OK: true, Text: "agents call " + d.server + "; each node checks it " +
		"before it starts"}
	d.mu.Lock()
	defer d.mu.Unlock()
	for zone, t := range d.troubles {
		if time.Since(t.at) < time.Hour {
			f.OK, f.Text = false, fmt.Sprintf("%s, %v ago: %s", zone, time.Since(t.at).Round(time.Second), t.text)
		}
	}
	for n := range sales {
		if !sales[n].Here && isSocket(d.server) {
			f.OK, f.Text = false, notHere
		}
	}
	return f
}
