package dynamostore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func ExampleNew() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency", func(o *dynamostore.Options) {
		o.AttemptTimeout = 500 * time.Millisecond
		o.ExpirationAttribute = "ttl" // the table's TTL attribute
	})
	_ = lambdaidem.New(store)
}

// In the smoke test of a deployment, a problem stops the deployment, and a warning is logged.
func ExampleStore_CheckTable() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency")

	var problems dynamostore.TableProblems
	errors.As(store.CheckTable(context.Background()), &problems)
	for _, p := range problems {
		if !p.Warning {
			log.Fatal(p)
		}
		log.Print(p)
	}
}

func ExampleCreateTable() {
	client := dynamodb.New(dynamodb.Options{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String("http://localhost:8000"), // DynamoDB Local
	})
	if err := dynamostore.CreateTable(context.Background(), client, "idempotency"); err != nil {
		log.Fatal(err)
	}
}

// The error of a method says why it failed, and whether the write may have been applied.
func ExampleStore_Acquire_errors() {
	unreachable := dynamodb.New(dynamodb.Options{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String("http://127.0.0.1:1"), // nothing listens there
	})
	store := dynamostore.New(unreachable, "idempotency", func(o *dynamostore.Options) { o.Attempts = 1 })

	now := time.Now()
	_, err := store.Acquire(context.Background(), lambdaidem.Claim{
		ID: "payments#1", Token: "random", Now: now, LeaseEnd: now.Add(time.Minute), Expires: now.Add(time.Hour),
	})
	var failed *lambdaidem.StoreError
	if errors.As(err, &failed) {
		fmt.Println(failed.Op, failed.Reason, failed.NotApplied)
	}
	// Output: acquire unreachable true
}

// Answers are encrypted before they leave the process, with keys from a secrets manager, for
// example. The first key encrypts, and all of them decrypt.
func ExampleStaticKeys() {
	secret := bytes.Repeat([]byte("0123456789abcdef"), 2)
	store := dynamostore.New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}), "idempotency", func(o *dynamostore.Options) {
		o.Encryption = dynamostore.StaticKeys(
			dynamostore.Key{ID: "2026-11", Secret: secret},
			dynamostore.Key{ID: "2026-08", Secret: bytes.Repeat([]byte{8}, 32)},
		)
	})
	fmt.Println(store.Prepare(context.Background()))
	// Output: <nil>
}

// The command idem and a function can read the same key file.
func ExampleParseKeys() {
	text := []byte(`
# The first key encrypts, all of them decrypt.
2026-06 AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=
2026-01 AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=
`) // returned by os.ReadFile or a secrets manager

	keys, err := dynamostore.ParseKeys(text)
	if err != nil {
		panic(err)
	}
	encrypted := func(o *dynamostore.Options) { o.Encryption = dynamostore.StaticKeys(keys...) }

	fmt.Println(keys)
	_ = dynamostore.New(dynamodb.New(dynamodb.Options{}), "idempotency", encrypted)

	_, err = dynamostore.ParseKeys([]byte("AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI= 2026-06"))
	fmt.Println(err)
	// Output:
	// [key "2026-06" key "2026-01"]
	// line 1: the first column could be a secret; write the id first, then the secret, and choose an id that is not the base64 of 32 bytes
}
