"""The exercises of the lessons, by the name that the learner's function keeps.

Each stands in the file of its subject with its known mistakes; its right answer for the learner's eyes is in
`solutions.py`.
"""

from lab.teach.exercise import Exercise
from lab.teach.exercises.affine import LINEAR_BACKWARD
from lab.teach.exercises.ahead import STEP_MS
from lab.teach.exercises.broadcasting import UNBROADCAST
from lab.teach.exercises.buffers import PLACES
from lab.teach.exercises.checkpoints import MY_CHECKPOINT
from lab.teach.exercises.collectives import MY_ALL_REDUCE, MY_FIRST_PLAN
from lab.teach.exercises.critical import CRITICAL_PATH
from lab.teach.exercises.deferred import RUN_GRAPH
from lab.teach.exercises.differences import CENTRAL_DIFFERENCE, FORWARD_DIFFERENCE, RICHARDSON
from lab.teach.exercises.duals import DUAL
from lab.teach.exercises.gradients import MULTIPLY_RULE, TRAINING_LOOP
from lab.teach.exercises.halving import HALVINGS
from lab.teach.exercises.jacobians import HVP, JACOBIAN
from lab.teach.exercises.keys import CACHE_KEY
from lab.teach.exercises.layers import DEAD_SHARE, MY_INIT
from lab.teach.exercises.memory import MEAN_LOSS, MOST_HELD
from lab.teach.exercises.orders import BACKWARD_ORDER
from lab.teach.exercises.parts import FEWEST_PARTS, SHARES
from lab.teach.exercises.passes import COMMON, DEAD_CODE
from lab.teach.exercises.pipelines import BUBBLE, MY_SCHEDULE
from lab.teach.exercises.queues import LIST_SCHEDULE
from lab.teach.exercises.rules import SOFTMAX_RULE
from lab.teach.exercises.shards import SHARD, WEIGHTED_MEAN
from lab.teach.exercises.steps import ONE_STEP
from lab.teach.exercises.tracing import TRACED
from lab.teach.exercises.values import VALUE
from lab.teach.exercises.walks import BACKWARD, WALK

_ALL = (MULTIPLY_RULE, TRAINING_LOOP, LINEAR_BACKWARD, RUN_GRAPH, ONE_STEP, FORWARD_DIFFERENCE, CENTRAL_DIFFERENCE,
        RICHARDSON, SOFTMAX_RULE, VALUE, BACKWARD_ORDER, WALK, UNBROADCAST, BACKWARD, DUAL, JACOBIAN, HVP, MY_INIT,
        DEAD_SHARE, MEAN_LOSS, MY_CHECKPOINT, MOST_HELD, TRACED, HALVINGS, CACHE_KEY, DEAD_CODE, COMMON, PLACES,
        CRITICAL_PATH, LIST_SCHEDULE, STEP_MS, MY_FIRST_PLAN, MY_ALL_REDUCE, SHARD, WEIGHTED_MEAN,
        FEWEST_PARTS, SHARES, BUBBLE, MY_SCHEDULE)  # fmt: skip

EXERCISES: dict[str, Exercise] = {exercise.name: exercise for exercise in _ALL}
"""Every exercise, by name."""
