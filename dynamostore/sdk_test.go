//go:build !race

// make test-without-race runs this test. The race detector sees the same tests on the direct
// transport.

package dynamostore

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// TestOnTheSDKsTransport runs tests of this package again, with the SDK's transport. The other
// tests use the direct transport, like most users. A test is in the list if its result could depend
// on how requests are sent: on the encoding of a request or a reply, or on what an error says about
// a write. How an answer is compressed and divided into parts does not depend on that.
func TestOnTheSDKsTransport(t *testing.T) {
	onSDK = true
	t.Cleanup(func() { onSDK = false })
	client, _ := inMemory()
	if which, why := New(client, "test").Transport(); which != TransportSDK {
		t.Fatalf("the transport is %q, since %q", which, why)
	}
	for _, test := range []func(*testing.T){
		// verdict_test.go
		TestX8_OneAmbiguousAttemptMakesTheCallUnknown, TestL4_OwnTokenInARefusalIsSuccess, TestX8_ALaterRefusalByAnothersRecordSettlesTheCall,
		TestX9_AConflictIsReportedAtOnce, TestX5_EveryReasonIsNamed, TestX8_AnAttemptThatHangsIsRetried, TestX8_AttemptsThatAllHangAreUnknown,
		TestX8_AnAnswerAtTheAttemptsEndCounts, TestX5_ATimeoutSaysWhoseItWas, TestX8_TheCallersOwnEndIsNotRetried,
		TestX8_AContextThatEndedBeforeSendingAppliedNothing, TestX8_AContextThatEndsWhileWaitingToRetryKeepsTheVerdict,
		TestX8_AContextThatEndsJustBeforeSendingAppliedNothing, TestX8_EveryServerErrorIsUnknown, TestX8_ALaterRefusalByAForeignItemSettlesTheCall,
		TestX8_ALaterRefusalByNothingSettlesTheCall, TestX8_AFailedReadAppliedNothing, TestX4_DynamoDBsWordsForTooLargeAreKnown,
		TestX8_AnAttemptThatDiesConnectingAppliedNothing,
		// conformance_test.go
		TestConformance,
		// faults_test.go
		TestE1_StoreOfFaultsTakesTransactions,
		// golden_test.go
		TestD4_ItemsOfEveryLayoutAreRead,
		// optimistic_test.go
		TestE4_OneRoundTripForANewRequest, TestE4_LoserOfARaceReplaysTheWinner, TestE4_FailedConditionsAreAnsweredAndStored, TestE4_RecordsInTheWay,
		TestE4_UnknownIsSettledByTheSameBytes, TestE3_MissingTableIsNamed, TestR3_TransactionsTakeLargeAnswersAlong,
		TestE4_LargeAnswerConsultsTheRecordFirst,
		// enlist_test.go
		TestE1_WritesAndCompletionAreOne, TestE1_OtherEndingsDropTheWrites, TestE1_FailedAnswerTakesWritesAlongWhenAsked, TestE1_PanicDropsTheWrites,
		TestE2_FailedConditionReleases, TestE2_FailedConditionIsUncertainUnderHold, TestE2_ElseDecides, TestE2_AbsentItemIsToldFromAFailedComparison,
		TestE2_FirstFailedWriteCounts, TestE2_LostLeaseWritesNothing, TestE1_LostReplyIsSentAgainAsTheSameBytes, TestE1_EachTransactionHasATokenOfItsOwn,
		TestE1_NothingIsEnlistedInVain, TestE1_UnguardedRequestsCommit, TestE1_UnguardedNetHTTPCommitsBeforeItsAnswer, TestE3_NinetyNineWrites,
		// parts_test.go
		TestR3_AnAnswerWhoseRecordChangedMeanwhileIsAskedForAgain, TestR3_AReadOfAPartThatFailsIsNoLoss, TestX7_NoRequestForAPartOutlivesItsCall,
		TestR3_PartsOutliveTheirRecord, TestD4_APartIsNoRecord, TestG3_AnAnswerIsTheOneThatIsCompleted,
		// cancelled_test.go
		TestX4_TransactionLeavesOutAnAnswerThatIsTooLarge, TestL7_TransactionOverAnExpiredRecordHasNone, TestE2_OwnCompletionComesFirst,
		TestE2_LateTransactionIsTheAnswer, TestE1_UnguardedTransactionThatMayHaveHappenedIsUnknown, TestX8_TransactionInProgressIsNoRefusal,
		TestE1_TransactionWithoutARecordIsNotSentWhenItsTokenIsForgotten, TestX8_TransactionIsJudgedOverEveryCall,
		// steps_test.go
		TestE5_GoldenItemsWithSteps, TestE5_StepsStandWithTheirEncoding, TestE5_StepsThatAreTooLargeAreNotApplied, TestE5_ALateSaveTakesNothingAway,
		TestE5_StepsCostNoFurtherRequest, TestE5_ATakeoverThatShowsNoItemIsUnknown, TestE5_AHandlersStepsRunOnceOnDynamoDB,
		// store_test.go
		TestL2_RoundTripsAreTwoForANewRecordAndOneForAnyOther, TestL2_ReturnedRecordsEqualTheStoredOnes, TestL2_ACompletionDoesNotBringItsAnswerBack,
		TestR1_EmptyBinaryDataIsEmptyNotAbsent, TestL8_GetReadsConsistently, TestD4_AForeignItemIsRefusedAndLeftAlone,
		TestX4_AResultThatIsTooLargeIsNotApplied, TestL3_AReplacedTokenWritesNothing, TestL6_ATakeoverLeavesNothingOfTheOldAttemptButItsSteps,
		TestX8_AnAnswerWithoutAttributesIsUnknown,
		// reasons_test.go
		TestX5_WhichLimitThrottlesIsNamed,
	} {
		name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
		t.Run(name[strings.LastIndex(name, ".")+1:], test)
	}
}
