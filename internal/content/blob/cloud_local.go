//go:build local

package blob

import (
	"context"
	"net/url"

	"gocloud.dev/blob"
)

func openS3(context.Context, string, url.Values) (*blob.Bucket, error) { return nil, errLocal }
func openLentS3(context.Context, string, url.Values, Loan) (*blob.Bucket, error) {
	return nil, errLocal
}
func openReadS3(context.Context, string, url.Values, string) (*blob.Bucket, error) {
	return nil, errLocal
}
func openGCS(context.Context, string, url.Values) (*blob.Bucket, error)   { return nil, errLocal }
func openAzure(context.Context, string, url.Values) (*blob.Bucket, error) { return nil, errLocal }

// elsewhere returns false: this build has no object stores.
func elsewhere(error) bool { return false }

func taken(error) bool { return false }

// Damaged returns false: folders report no damage themselves.
func Damaged(error) bool { return false }

// Denied returns false: folders deny nothing by a provider's rules.
func Denied(error) bool { return false }
