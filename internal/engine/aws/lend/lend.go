//go:build !local

// Package lend gets credentials for the checkpoint store of jobs from AWS STS.
package lend

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	gcblob "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/policy"
	"scrimp/internal/engine/aws/setting"
)

// credentialsTTL is the lifetime of a job's credentials: the minimum of STS. Source: docs.aws.amazon.com, AWS STS API
// reference, AssumeRole, DurationSeconds, 2026-11.
const credentialsTTL = 15 * time.Minute

// Credentials returns credentials of the engine's role for a job and a prefix of its store.
func Credentials(ctx context.Context, a *account.Client, name string, w *setting.With, prefix, job string) (
	scopedcreds.Credentials, error) {
	scope := setting.RoleOf(w.JobRole)
	scope.Bucket = w.Bucket.Bucket
	out, err := a.STS.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: sdk.String(w.JobRole),
		RoleSessionName: sdk.String(sessionName(job)), DurationSeconds: sdk.Int32(int32(credentialsTTL / time.Second)),
		Policy: sdk.String(policy.Prefix(scope, prefix).Compact())})
	switch {
	case err != nil:
		return scopedcreds.Credentials{}, unlent(a, name, w, err)
	case out.Credentials == nil || sdk.ToString(out.Credentials.AccessKeyId) == "" || out.Credentials.Expiration == nil:
		return scopedcreds.Credentials{}, errors.New("assume the role for the store: STS answers without credentials")
	}
	c := out.Credentials
	return scopedcreds.Credentials{Key: sdk.ToString(c.AccessKeyId), Secret: sdk.ToString(c.SecretAccessKey),
		Token: sdk.ToString(c.SessionToken), Region: w.Bucket.Region, Expires: *c.Expiration}, nil
}

// lendCodes are STS errors for which a retry is useless: the role, its trust policy or the account denies.
var lendCodes = slices.Concat(account.DeniedCodes, []string{"RegionDisabledException", "MalformedPolicyDocument",
	"PackedPolicyTooLarge", "ValidationError"})

// unlent explains why there are no credentials.
func unlent(a *account.Client, name string, w *setting.With, err error) error {
	if slices.Contains(lendCodes, account.CodeOf(err)) {
		return fmt.Errorf("%w: %s (%s): let the role's trust policy allow sts:AssumeRole to %s, and that user's policy "+
			"allow it on the role; scrimp doctor %s tries it", scopedcreds.ErrDenied, w.JobRole,
			account.SaidBy(err), a.User, name)
	}
	return fmt.Errorf("assume the role for the store: %w", account.Explain(name, w, err))
}

// sessionName returns a job's id as an STS session name of 2 to 64 characters; a longer id ends in its hash.
func sessionName(job string) string {
	const most = 64
	switch {
	case len(job) < 2:
		return job + "-job"
	case len(job) > most:
		sum := sha256.Sum256([]byte(job))
		return job[:most-17] + "-" + hex.EncodeToString(sum[:8])
	}
	return job
}

// Try tries what jobs with the store will need: the role with a job's policy, and with its credentials a blob
// that is written only if absent, read and removed.
func Try(ctx context.Context, a *account.Client, name string, w *setting.With) engine.Finding {
	f := engine.Finding{Name: "store"}
	const probe = "scrimp-doctor"
	address := w.Bucket.Addresses()[0]
	prefix, _ := w.Bucket.Of(address, probe)
	c, err := Credentials(ctx, a, name, w, prefix, probe)
	if err == nil {
		err = tryBucket(ctx, address, strings.TrimPrefix(prefix, w.Bucket.Prefix+"/"), c)
	}
	if err != nil {
		f.Text = err.Error()
		return f
	}
	f.OK, f.Text = true, fmt.Sprintf("jobs whose checkpoint.store is %s get credentials for their own prefix: with those "+
		"of %s for a job, until %s, a blob was written once, read and removed", w.Store, w.JobRole,
		c.Expires.UTC().Format(time.RFC3339))
	return f
}

// tryBucket does below a prefix of a store what an agent does with a checkpoint.
func tryBucket(ctx context.Context, address, prefix string, c scopedcreds.Credentials) error {
	b, err := blob.OpenLent(ctx, address, blob.Loan{Prefix: prefix,
		Fetch: func(context.Context) (scopedcreds.Credentials, error) { return c, nil }})
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() // every write has been confirmed
	key, text := prefix+"/try-"+rand.Text(), []byte("scrimp doctor")
	once := &gcblob.WriterOptions{IfNotExist: true}
	if err := b.WriteAll(ctx, key, text, once); err != nil {
		return fmt.Errorf("write %s to %s: %w", key, address, err)
	}
	again := b.WriteAll(ctx, key, text, once)
	got, err := b.ReadAll(ctx, key)
	if removed := b.Delete(ctx, key); removed != nil {
		return fmt.Errorf("remove %s from %s, where it is left over: %w", key, address, removed)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read %s from %s: %w", key, address, err)
	case !bytes.Equal(got, text):
		return fmt.Errorf("read %s from %s: other bytes than were written", key, address)
	case again == nil:
		return fmt.Errorf("%s writes %s a second time, though asked to write it only once: two attempts of a job could "+
			"publish the same checkpoint. Take a store that honours If-None-Match", address, key)
	case !blob.Taken(again):
		return fmt.Errorf("write %s to %s a second time: %w", key, address, again)
	}
	return nil
}
