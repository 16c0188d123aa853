//go:build !local

package blob

import (
	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
)

// Class returns the storage class of a listed blob as its provider names it, or "" if the store has none.
func Class(o *blob.ListObject) string {
	var amazon types.Object
	var google storage.ObjectAttrs
	var azure container.BlobItem
	switch {
	case o.As(&amazon):
		return string(amazon.StorageClass)
	case o.As(&google):
		return google.StorageClass
	case o.As(&azure):
		if azure.Properties != nil && azure.Properties.AccessTier != nil {
			return string(*azure.Properties.AccessTier)
		}
	}
	return ""
}

// Version returns the entity tag of a listed blob in S3, which changes with its content; "" for other stores.
func Version(o *blob.ListObject) string {
	var amazon types.Object
	if o.As(&amazon) && amazon.ETag != nil {
		return *amazon.ETag
	}
	return ""
}

// VersionRead returns the Version of the blob behind a reader.
func VersionRead(r *blob.Reader) string {
	var amazon s3.GetObjectOutput
	if r.As(&amazon) && amazon.ETag != nil {
		return *amazon.ETag
	}
	return ""
}
