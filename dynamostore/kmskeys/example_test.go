package kmskeys_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/dynamostore/kmskeys"
)

// Answers are encrypted before they leave the function, with data keys of one KMS key.
func Example() {
	var cfg aws.Config // config.LoadDefaultConfig
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency", func(o *dynamostore.Options) {
		o.Encryption = kmskeys.New(kms.NewFromConfig(cfg), "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab")
	})
	_ = store
}
