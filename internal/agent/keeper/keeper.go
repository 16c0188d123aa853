// Package keeper connects one attempt to its stores: it holds the claim on the job's checkpoints,
// keeps outputs, and fetches the work folder.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	gcblob "gocloud.dev/blob"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/agent/save"
	"scrimp/internal/agent/wire"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
	"scrimp/internal/wire/api"
)

// Keeper is the store of one attempt: its claim on the job's checkpoints, and its outputs.
type Keeper interface {
	save.Vault
	// Restore puts the newest valid checkpoint into folder dir, and returns those that it refused.
	// r is empty if there is no checkpoint.
	Restore(ctx context.Context, dir string) (r Restored, refused []api.Refused, err error)
	// Fetch copies the work folder from a store's address into folder dir.
	Fetch(ctx context.Context, address, dir string) error
	// Keep copies the named folders below dir to the store of outputs.
	Keep(ctx context.Context, dir confined.Folder, folders []string) (Outputs, error)
	// FromCache returns what Fetch took from the machine's cache.
	FromCache() datacache.Copied
	Close() error
}

// Outputs are kept outputs.
type Outputs struct {
	At     string // ADDRESS#NAME
	Digest string // format.Manifest.Digest of their content
	Left   folder.Left
}

// Restored is the checkpoint from which a program starts.
type Restored struct {
	Manifest string
	Step     int64
}

// storePatience is how long to retry an unreachable store before the attempt starts.
const storePatience = 5 * time.Minute

// store implements Keeper with a checkpoint store.
type store struct {
	a        api.Assignment
	server   *httpblob.Bucket // the server's own store
	lends    func(context.Context) (api.StoreCredentials, error)
	works    func(ctx context.Context, refused string) (api.WorkBlob, error)
	cache    *datacache.Cache // nil: none
	cached   datacache.Copied
	log      *slog.Logger
	bucket   *gcblob.Bucket       // nil: the job keeps no checkpoints
	writer   *checkpoint.Writer   // set on rank 0
	follower *checkpoint.Follower // set on the other ranks
	capturer *folder.Capturer
	aside    string // folder for captures; empty: beside the captured folder
	first    bool   // no capture was made yet
}

// Options configure a Keeper.
type Options struct {
	Task   api.Assignment
	Server *httpblob.Bucket // the server's own store
	// Lends fetches credentials for the job's store, if the server lends them.
	Lends func(context.Context) (api.StoreCredentials, error)
	// Works asks for the location of the work folder in that store. refused tells the server why
	// the agent rejected its last answer.
	Works func(ctx context.Context, refused string) (api.WorkBlob, error)
	Aside string           // folder for captures; empty: beside the captured folder
	Cache *datacache.Cache // of the machine; nil: none
	Log   *slog.Logger
}

// Open opens the store. On rank 0 it claims the store for the attempt's epoch, which stops older
// attempts from writing. The other ranks wait for that claim.
func Open(ctx context.Context, o Options) (Keeper, error) {
	a, log := o.Task, o.Log
	k := &store{a: a, server: o.Server, lends: o.Lends, works: o.Works, log: log, aside: o.Aside, cache: o.Cache,
		first: true}
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
	if err == nil && a.Node > 0 { // rank 0 may start much later; if it never does, the server ends the attempt
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

// openCheckpoints opens the checkpoint store, with credentials that the server lends if the
// assignment says so. The agent keeps them only in memory.
func (k *store) openCheckpoints(ctx context.Context) (*gcblob.Bucket, error) {
	c := k.a.Checkpoint
	if !c.Lent || k.lends == nil {
		return k.openStore(ctx, c.URL)
	}
	b, err := blob.OpenLent(ctx, c.URL, blob.Loan{Prefix: c.Prefix,
		Fetch: func(ctx context.Context) (scopedcreds.Credentials, error) {
			c, err := k.lends(ctx)
			return scopedcreds.Credentials{Key: c.Key, Secret: c.Secret, Token: c.Token, Region: c.Region,
				Expires: c.Expires}, err
		}})
	return b, finalOf(err)
}

// final is an error that a retry, here or on another machine, meets again. It says nothing of the server, which refused
// nothing.
type final struct{ error }

func (f final) Is(target error) bool { return target == wire.ErrBad }
func (f final) Unwrap() error        { return f.error }

// finalOf marks an error of a store that can never be opened as things are, such as a bucket that is gone.
func finalOf(err error) error {
	if blob.Hopeless(err) {
		return final{err}
	}
	return err
}

// openStore opens the store at an address. scrimp: is the server's own store, and may have a prefix.
func (k *store) openStore(ctx context.Context, address string) (*gcblob.Bucket, error) {
	rest, own := strings.CutPrefix(address, api.ServerStore)
	if !own || k.server == nil {
		b, err := blob.Open(ctx, address)
		return b, finalOf(err)
	}
	prefix, ok := strings.CutPrefix(rest, "?prefix=")
	if rest != "" && !ok {
		return nil, fmt.Errorf("%w: %s is not an address in the server's store", wire.ErrBad, address)
	}
	b := gcblob.NewBucket(k.server)
	if ok {
		b = gcblob.PrefixedBucket(b, prefix)
	}
	return b, nil
}

// patiently retries while a store is unreachable.
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

// fenceOf translates errors of stores to the agent's errors.
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

// Capture implements save.Vault. The first capture copies everything: only from the second on does
// it know whether the program overwrites its files in place.
func (k *store) Capture(ctx context.Context, dir confined.Folder) (save.Capture, error) {
	if k.capturer == nil || k.capturer.Folder != dir {
		k.capturer = &folder.Capturer{Folder: dir, Aside: k.aside, Ignore: save.Aside()}
		if k.a.Session != "" { // its files are saved whole
			k.capturer.Ignore = nil
		}
	}
	k.capturer.Copy = k.first
	c, err := k.capturer.Capture(ctx)
	if err != nil {
		return nil, fenceOf(err)
	}
	k.first = false
	return c, nil
}

// Publish implements save.Vault. It reads the checkpoint back to verify it.
func (k *store) Publish(ctx context.Context, c save.Capture, m save.Meta) (save.Published, error) {
	copied, ok := c.(*folder.Capture)
	if !ok {
		return save.Published{}, fmt.Errorf("publish checkpoint: a capture of type %T", c)
	}
	meta := format.Meta{Job: k.a.Job, Attempt: k.a.Attempt, Step: m.Step, Captured: m.Captured, Metrics: m.Metrics}
	publish := k.writer.PublishCapture
	switch {
	case k.follower != nil: // rank 0 publishes the manifest
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

// Prune implements save.Vault with the job's keep rule.
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
	case k.follower != nil: // no limit: rank 0 may take long
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

func (k *store) Keep(ctx context.Context, dir confined.Folder, folders []string) (out Outputs, err error) {
	name := api.OutputsName(k.a.Job, k.a.Node)
	err = wire.Retry(ctx, func(ctx context.Context) (err error) {
		b, err := k.openStore(ctx, k.a.OutputsURL)
		if err != nil {
			return fmt.Errorf("%w: %w", wire.ErrBad, err)
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		m, stats, err := checkpoint.Open(b, k.a.OutputsPrefix).Keep(ctx, dir, folders, name)
		out.Left, out.Digest = stats.Left, m.Digest()
		return fenceOf(err)
	})
	if err != nil {
		return Outputs{}, err
	}
	k.cacheOutputs(ctx, dir, folders)
	out.At = k.a.OutputsURL
	if k.a.OutputsPrefix != "" {
		out.At += "?prefix=" + k.a.OutputsPrefix
	}
	out.At += "#" + name
	return out, nil
}

// Close closes the store. The claim stays until a newer attempt takes it.
func (k *store) Close() error {
	if k.bucket == nil {
		return nil
	}
	return k.bucket.Close()
}
