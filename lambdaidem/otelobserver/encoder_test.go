package otelobserver_test

import (
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"go.opentelemetry.io/otel/attribute"
)

type (
	v2Request  = events.APIGatewayV2HTTPRequest
	v2Response = events.APIGatewayV2HTTPResponse
)

// encoder encodes attributes without escapes, unlike OpenTelemetry's default encoder.
type encoder struct{}

var encoderID = attribute.NewEncoderID()

func (encoder) ID() attribute.EncoderID { return encoderID }

func (encoder) Encode(all attribute.Iterator) string {
	var texts []string
	for all.Next() {
		a := all.Attribute()
		texts = append(texts, string(a.Key)+"="+a.Value.AsString())
	}
	return strings.Join(texts, ",")
}
