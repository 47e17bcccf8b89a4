package store

// What the tests of plans and errors look at from outside.
var (
	TaskQuery        = taskQuery
	StoryQuery       = storyQuery
	SelectWaiting    = selectWaiting
	SelectBranches   = selectBranches
	CountStories     = countStories
	CountEpic        = countEpic
	Elsewhere        = elsewhere
	LoadStatements   = loadStatements
	CommitStatements = commitStatements
	Mapped           = mapped
)
