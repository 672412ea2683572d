// Package dynamostore keeps idempotency records in DynamoDB.
package dynamostore
