//go:build !local

// Package answer decodes the long answers of EC2 and of its price list, page by page, where AWS' SDK needs a dozen
// times as long: what is sold in all regions is more than 100 MB. Requests, signatures, retries and errors stay the
// SDK's, and so does each answer that is not as EC2 writes them.
package answer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// decoders are what is decoded here, by operation. One that is nil has met something odd.
var decoders = map[string]func([]byte) any{
	"DescribeInstanceTypes":         instanceTypes,
	"DescribeInstanceTypeOfferings": offerings,
	"DescribeSpotPriceHistory":      spotPrices,
	"GetProducts":                   products,
}

// Lean is an option of calls that read a page of types, offerings or spot prices: the answer has the fields that this
// package knows, and no others. Of other calls it is an error.
func Lean(o *ec2.Options) { o.APIOptions = append(o.APIOptions, replace) }

// LeanProducts is Lean of a page of the price list.
func LeanProducts(o *pricing.Options) { o.APIOptions = append(o.APIOptions, replace) }

// step is where the SDK decodes.
const step = "OperationDeserializer"

func replace(stack *middleware.Stack) error {
	decode := decoders[stack.ID()]
	sdk, found := stack.Deserialize.Get(step)
	if decode == nil || !found {
		return fmt.Errorf("%s is not decoded here", stack.ID())
	}
	_, err := stack.Deserialize.Swap(step, decoder{decode, sdk})
	return err
}

// decoder stands in the place of the SDK's.
type decoder struct {
	decode func([]byte) any
	sdk    middleware.DeserializeMiddleware
}

// ID implements middleware.DeserializeMiddleware.
func (decoder) ID() string { return step }

// HandleDeserialize implements middleware.DeserializeMiddleware.
func (d decoder) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput,
	next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if ok && err == nil && response.StatusCode/100 == 2 {
		b, _ := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(b)
		b.Reset()
		_, cut := b.ReadFrom(response.Body)
		if out.Result = d.decode(b.Bytes()); cut == nil && out.Result != nil {
			smithyhttp.CloseResponseBody(ctx, response, false, nil)
			return out, meta, nil
		}
		out.Result = nil
		response.Body = again{io.MultiReader(b, broken{cut}), response.Body}
	}
	return d.sdk.HandleDeserialize(ctx, in, answered{out, meta, err})
}

// buffers hold bodies; one of types has 200 KB to 500 KB.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// again is a body that was read, and is read once more.
type again struct {
	io.Reader
	io.Closer
}

// broken ends a body as it ended when it was read first.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) {
	if b.err == nil {
		return 0, io.EOF
	}
	return 0, b.err
}

// answered is a step that has been taken.
type answered struct {
	out  middleware.DeserializeOutput
	meta middleware.Metadata
	err  error
}

// HandleDeserialize implements middleware.DeserializeHandler.
func (a answered) HandleDeserialize(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput,
	middleware.Metadata, error) {
	return a.out, a.meta, a.err
}
