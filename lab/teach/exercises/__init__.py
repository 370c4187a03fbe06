"""The exercises of the lessons, by the name that the learner's function keeps.

Each stands in the file of its subject with its known mistakes; its right answer for the learner's eyes is in
`solutions.py`.
"""

from lab.teach.exercise import Exercise
from lab.teach.exercises.broadcasting import UNBROADCAST
from lab.teach.exercises.checkpoints import MY_CHECKPOINT
from lab.teach.exercises.collectives import MY_ALL_REDUCE, MY_FIRST_PLAN
from lab.teach.exercises.differences import CENTRAL_DIFFERENCE, FORWARD_DIFFERENCE, RICHARDSON
from lab.teach.exercises.duals import DUAL
from lab.teach.exercises.gradients import MULTIPLY_RULE, TRAINING_LOOP
from lab.teach.exercises.jacobians import HVP, JACOBIAN
from lab.teach.exercises.layers import DEAD_SHARE, MY_INIT
from lab.teach.exercises.memory import MEAN_LOSS, MOST_HELD
from lab.teach.exercises.orders import BACKWARD_ORDER
from lab.teach.exercises.pipelines import BUBBLE, MY_SCHEDULE
from lab.teach.exercises.rules import SOFTMAX_RULE
from lab.teach.exercises.values import VALUE
from lab.teach.exercises.walks import BACKWARD, WALK

_ALL = (MULTIPLY_RULE, TRAINING_LOOP, FORWARD_DIFFERENCE, CENTRAL_DIFFERENCE, RICHARDSON, SOFTMAX_RULE,
        VALUE, BACKWARD_ORDER, WALK, UNBROADCAST, BACKWARD, DUAL, JACOBIAN, HVP, MY_INIT, DEAD_SHARE,
        MEAN_LOSS, MY_CHECKPOINT, MOST_HELD, MY_FIRST_PLAN, MY_ALL_REDUCE, BUBBLE, MY_SCHEDULE)  # fmt: skip

EXERCISES: dict[str, Exercise] = {exercise.name: exercise for exercise in _ALL}
"""Every exercise, by name."""
