"""Teaching: predictions said before seeing, exercises that name the first wrong thing, progress in one file."""

from lab.teach.exercise import Check, Exercise, Feedback, Mutant
from lab.teach.exercises import EXERCISES
from lab.teach.lesson import Lesson
from lab.teach.predict import Outcome, Prediction
from lab.teach.progress import Progress
from lab.teach.refusal import Refusal
from lab.teach.solutions import SOLUTIONS

__all__ = [
    "EXERCISES",
    "SOLUTIONS",
    "Check",
    "Exercise",
    "Feedback",
    "Lesson",
    "Mutant",
    "Outcome",
    "Prediction",
    "Progress",
    "Refusal",
]
