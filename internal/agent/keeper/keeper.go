// Package keeper is the store of one attempt: it holds the claim on the checkpoints of a job, keeps outputs, and
// fetches the work folder.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	gcblob "gocloud.dev/blob"

	"scrimp/internal/agent/save"
	"scrimp/internal/agent/wire"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/content/blob/lent"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
	"scrimp/internal/wire/api"
)

// Keeper is the store of one attempt: its claim on the job's checkpoints, and
// the place of its outputs.
type Keeper interface {
	save.Vault
	// Restore puts the newest checkpoint that verifies into folder dir, and
	// says which ones it passed over. restored is empty where there is none.
	Restore(ctx context.Context, dir string) (r Restored, refused []api.Refused, err error)
	// Fetch copies the work folder from a store's address into folder dir.
	Fetch(ctx context.Context, address, dir string) error
	// Keep copies the named folders below dir to the place of outputs, and says where they are, and what it left out
	// since it cannot be kept.
	Keep(ctx context.Context, dir confined.Folder, folders []string) (where string, left folder.Left, err error)
	Close() error
}

// Restored is the checkpoint that a program begins from.
type Restored struct {
	Manifest string
	Step     int64
}

// storePatience is how long a store may be away before the attempt begins.
const storePatience = 5 * time.Minute

// store is the keeper in a store of checkpoints.
type store struct {
	a        api.Assignment
	server   *httpblob.Bucket // the server's own store
	lends    func(context.Context) (api.StoreCredentials, error)
	works    func(ctx context.Context, refused string) (api.WorkBlob, error)
	log      *slog.Logger
	bucket   *gcblob.Bucket       // nil: the job keeps no checkpoints
	writer   *checkpoint.Writer   // of rank 0
	follower *checkpoint.Follower // of the other machines of a gang
	capturer *folder.Capturer
	aside    string // folder of captures; "": beside what is captured
	first    bool   // no capture was made yet
}

// Options says whose keeper is opened, and what it has.
type Options struct {
	Task   api.Assignment
	Server *httpblob.Bucket // the server's own store
	// Lends fetches credentials for the job's store, where the server lends them.
	Lends func(context.Context) (api.StoreCredentials, error)
	// Works asks where in that store the work folder lies, or says why what it was told was not taken.
	Works func(ctx context.Context, refused string) (api.WorkBlob, error)
	Aside string // folder of captures; "": beside what is captured
	Log   *slog.Logger
}

// Open opens the store, and on rank 0 claims it for the attempt's epoch: older
// attempts can write no more from here on. The others of a gang wait for that claim.
func Open(ctx context.Context, o Options) (Keeper, error) {
	a, log := o.Task, o.Log
	k := &store{a: a, server: o.Server, lends: o.Lends, works: o.Works, log: log, aside: o.Aside, first: true}
	if a.Checkpoint.URL == "" {
		return k, nil
	}
	var store *checkpoint.Store
	err := patiently(ctx, log, func(ctx context.Context) error {
		b, err := k.openCheckpoints(ctx)
		if err != nil {
			return err
		}
		store = checkpoint.Open(b, a.Checkpoint.Prefix).Of(a.Node, max(1, a.Nodes))
		if !a.Checkpoint.Seeded {
			store = store.Unseeded()
		}
		if a.Node == 0 {
			k.writer, err = store.Claim(ctx, a.Epoch, a.Attempt)
		}
		if err != nil {
			return errors.Join(fenceOf(err), b.Close())
		}
		k.bucket = b
		return nil
	})
	if err == nil && a.Node > 0 { // rank 0's machine may be long in coming: the server ends a wait for none
		err = k.follow(ctx, store)
	}
	return k, err
}

func (k *store) follow(ctx context.Context, store *checkpoint.Store) error {
	err := wire.Retry(ctx, func(ctx context.Context) (err error) {
		k.follower, err = store.Follow(ctx, k.a.Epoch, k.a.Attempt)
		return fenceOf(err)
	})
	if err != nil {
		return errors.Join(err, k.Close())
	}
	return nil
}

// openCheckpoints opens the store of checkpoints, with what the server lends for it where it does. The credentials
// are in this process' memory alone.
func (k *store) openCheckpoints(ctx context.Context) (*gcblob.Bucket, error) {
	c := k.a.Checkpoint
	if !c.Lent || k.lends == nil {
		return k.openStore(ctx, c.URL)
	}
	return blob.OpenLent(ctx, c.URL, blob.Loan{Prefix: c.Prefix,
		Fetch: func(ctx context.Context) (lent.Credentials, error) {
			c, err := k.lends(ctx)
			return lent.Credentials{Key: c.Key, Secret: c.Secret, Token: c.Token, Region: c.Region, Expires: c.Expires}, err
		}})
}

// openStore opens the store at an address; scrimp: is the server's own, and takes a prefix too.
func (k *store) openStore(ctx context.Context, address string) (*gcblob.Bucket, error) {
	rest, own := strings.CutPrefix(address, api.ServerStore)
	if !own || k.server == nil {
		b, err := blob.Open(ctx, address)
		if errors.Is(err, blob.ErrURL) {
			return nil, fmt.Errorf("%w: %w", wire.ErrBad, err)
		}
		return b, err
	}
	prefix, ok := strings.CutPrefix(rest, "?prefix=")
	if rest != "" && !ok {
		return nil, fmt.Errorf("%w: %s is no address in the server's store", wire.ErrBad, address)
	}
	b := gcblob.NewBucket(k.server)
	if ok {
		b = gcblob.PrefixedBucket(b, prefix)
	}
	return b, nil
}

// patiently tries again while a store is away.
func patiently(ctx context.Context, log *slog.Logger, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, storePatience, fmt.Errorf("not within %v", storePatience))
	defer cancel()
	return wire.Retry(ctx, func(ctx context.Context) error {
		err := do(ctx)
		if err != nil {
			log.Warn("reach the store", "error", err)
		}
		return err
	})
}

// fenceOf turns the store's words into the agent's.
func fenceOf(err error) error {
	switch {
	case errors.Is(err, wire.ErrFenced):
		return err
	case errors.Is(err, checkpoint.ErrFenced), errors.Is(err, httpblob.ErrOver):
		return fmt.Errorf("%w: %w", wire.ErrFenced, err)
	case errors.Is(err, checkpoint.ErrChanged):
		return fmt.Errorf("%w: %w", save.ErrMoving, err)
	case errors.Is(err, checkpoint.ErrSkipped):
		return fmt.Errorf("%w: %w", save.ErrSkipped, err)
	case errors.Is(err, httpblob.ErrOwn), errors.Is(err, checkpoint.ErrRanks), errors.Is(err, checkpoint.ErrFolder):
		return fmt.Errorf("%w: %w", wire.ErrBad, err)
	}
	return err
}

// Capture implements save.Vault. The first capture is a copy of everything:
// whether the program overwrites its files in place is only known from the second on.
func (k *store) Capture(ctx context.Context, dir confined.Folder) (save.Capture, error) {
	if k.capturer == nil || k.capturer.Folder != dir {
		k.capturer = &folder.Capturer{Folder: dir, Aside: k.aside, Ignore: save.Aside()}
	}
	k.capturer.Copy = k.first
	c, err := k.capturer.Capture(ctx)
	if err != nil {
		return nil, fenceOf(err)
	}
	k.first = false
	return c, nil
}

// Publish implements save.Vault: what it returns was read back from the store.
func (k *store) Publish(ctx context.Context, c save.Capture, m save.Meta) (save.Published, error) {
	copied, ok := c.(*folder.Capture)
	if !ok {
		return save.Published{}, fmt.Errorf("publish checkpoint: a capture of type %T", c)
	}
	meta := format.Meta{Job: k.a.Job, Attempt: k.a.Attempt, Step: m.Step, Captured: m.Captured, Metrics: m.Metrics}
	publish := k.writer.PublishCapture
	switch {
	case k.follower != nil: // rank 0 publishes it
		stats, err := k.follower.Share(ctx, copied, meta)
		return save.Published{Bytes: stats.Bytes, Uploaded: stats.Uploaded}, fenceOf(err)
	case k.a.Checkpoint.AllRanks:
		publish = k.writer.PublishRanks
	}
	manifest, stats, err := publish(ctx, copied, meta)
	if err == nil {
		err = k.writer.Verify(ctx, manifest)
	}
	if err != nil {
		return save.Published{}, fenceOf(err)
	}
	return save.Published{Manifest: manifest.Name, Bytes: stats.Bytes, Uploaded: stats.Uploaded}, nil
}

// Prune implements save.Vault by the job's keep rule.
func (k *store) Prune(ctx context.Context) error {
	if k.follower != nil {
		return nil
	}
	c := k.a.Checkpoint
	keep := checkpoint.Keep{Last: c.KeepLast, EveryNth: c.KeepNth}
	if c.KeepBest {
		keep.Best, keep.Maximize = c.Metric, c.Goal == "maximize"
	}
	_, err := k.writer.Prune(ctx, keep)
	return fenceOf(err)
}

func (k *store) Restore(ctx context.Context, dir string) (Restored, []api.Refused, error) {
	var r checkpoint.Restored
	var err error
	switch {
	case k.follower != nil: // as long as rank 0 takes
		err = wire.Retry(ctx, func(ctx context.Context) (err error) {
			r, err = k.follower.Restore(ctx, dir)
			return fenceOf(err)
		})
	case k.writer != nil:
		err = patiently(ctx, k.log, func(ctx context.Context) (err error) {
			r, err = k.writer.Restore(ctx, dir)
			if err == nil && k.a.Nodes > 1 {
				err = k.writer.Lead(ctx, r)
			}
			return fenceOf(err)
		})
	}
	var refused []api.Refused
	for _, x := range r.Refused {
		refused = append(refused, api.Refused{Manifest: x.Name, Why: x.Why})
	}
	if err != nil || r.Manifest == nil {
		return Restored{}, refused, err
	}
	return Restored{Manifest: r.Manifest.Name, Step: r.Manifest.Step}, refused, nil
}

// Keep returns an address of the form ADDRESS#NAME.
func (k *store) Keep(ctx context.Context, dir confined.Folder, folders []string) (where string,
	left folder.Left, err error) {
	name := api.OutputsName(k.a.Job, k.a.Node)
	err = wire.Retry(ctx, func(ctx context.Context) (err error) {
		b, err := k.openStore(ctx, k.a.OutputsURL)
		if err != nil {
			return fmt.Errorf("%w: %w", wire.ErrBad, err)
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		_, stats, err := checkpoint.Open(b, k.a.OutputsPrefix).Keep(ctx, dir, folders, name)
		left = stats.Left
		return fenceOf(err)
	})
	if err != nil {
		return "", nil, err
	}
	where = k.a.OutputsURL
	if k.a.OutputsPrefix != "" {
		where += "?prefix=" + k.a.OutputsPrefix
	}
	return where + "#" + name, left, nil
}

// Close gives up the store. The claim stays: nobody but a newer attempt takes it.
func (k *store) Close() error {
	if k.bucket == nil {
		return nil
	}
	return k.bucket.Close()
}
