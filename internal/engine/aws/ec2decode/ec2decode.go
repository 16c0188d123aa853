//go:build !local

// Package ec2decode decodes the long answers of EC2 and of its price list, page by page. The AWS SDK takes a dozen
// times as long, and the offers of all regions are more than 100 MB. The SDK still handles requests, signatures,
// retries and errors, and every answer that EC2 does not write in its usual form.
package ec2decode

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

// decoders holds a decoder for each operation handled here. A decoder returns nil for input in an unusual form.
var decoders = map[string]func([]byte) any{
	"DescribeInstanceTypes":         instanceTypes,
	"DescribeInstanceTypeOfferings": offerings,
	"DescribeSpotPriceHistory":      spotPrices,
	"GetProducts":                   products,
}

// Lean is an option for calls that read a page of types, offerings or spot prices: the result has only the fields
// that this package knows. Other calls fail with it.
func Lean(o *ec2.Options) { o.APIOptions = append(o.APIOptions, replace) }

// LeanProducts is Lean for a page of the price list.
func LeanProducts(o *pricing.Options) { o.APIOptions = append(o.APIOptions, replace) }

// step is the SDK's decoding middleware.
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

// decoder replaces the SDK's decoder.
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

// buffers pool response bodies; one of types has 200 KB to 500 KB.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// again is a body that was read and is read once more.
type again struct {
	io.Reader
	io.Closer
}

// broken ends a body with the error of the first read.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) {
	if b.err == nil {
		return 0, io.EOF
	}
	return 0, b.err
}

// answered is a middleware step that has already run.
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
